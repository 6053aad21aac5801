package providers

import "time"

// Heartbeat is what an agent says every few seconds.
type Heartbeat struct {
	Token   string         `json:"token"`             // of the last answer
	Confirm string         `json:"confirm,omitempty"` // that the answer to this very heartbeat asked for
	GPUCode string         `json:"gpu_code"`
	Devices []DeviceReport `json:"devices"`
	Samples []Sample       `json:"samples,omitempty"` // since the last heartbeat that was answered
	Faults  []Fault        `json:"faults,omitempty"`
}

// Orders are the answer to a beat.
type Orders struct {
	Token   string        `json:"token"`             // for the next heartbeat; older ones are worth nothing
	Confirm string        `json:"confirm,omitempty"` // nothing was taken: the heartbeat is to be repeated with this
	State   string        `json:"state"`             // the provider's
	Reason  string        `json:"reason,omitempty"`
	Every   time.Duration `json:"every"`           // between heartbeats
	Renew   bool          `json:"renew,omitempty"` // the certificate is due for renewal
	Devices []DeviceOrder `json:"devices,omitempty"`
}

// Redemption is how an agent enrols: by a code, for a key of its own, with
// what its machine is and has.
type Redemption struct {
	Code    string         `json:"code"`
	CSR     string         `json:"csr"`     // PEM
	Name    string         `json:"name"`    // what the machine calls itself
	Machine string         `json:"machine"` // see MachineDigest
	Devices []DeviceReport `json:"devices"`
}

// Enrolled is what an agent gets.
type Enrolled struct {
	Provider    string `json:"provider"` // the name
	State       string `json:"state"`
	Certificate string `json:"certificate"` // PEM
	Authority   string `json:"authority"`   // PEM
	Token       string `json:"token"`       // of the first heartbeat

	Machine string `json:"machine,omitempty"` // the digest by which the portal knows the machine, where it is not the agent's
}

// Joining is how an agent enrols for which its cluster vouches: by the token
// of its pod, for a key of its own, with what its machine has.
type Joining struct {
	Token   string         `json:"token"`
	CSR     string         `json:"csr"`     // PEM
	Machine string         `json:"machine"` // see MachineDigest; a provider that was enrolled by hand is known by it
	Devices []DeviceReport `json:"devices"`
}

// Renewal asks for a certificate for a new key, with what a heartbeat would have to
// show.
type Renewal struct {
	CSR     string `json:"csr"`               // PEM
	Token   string `json:"token"`             // of the last answer to a heartbeat; it stays good
	Confirm string `json:"confirm,omitempty"` // that the answer to this very request asked for
}

// Renewed is the answer.
type Renewed struct {
	Certificate string `json:"certificate"`       // PEM
	Confirm     string `json:"confirm,omitempty"` // nothing was done: the request is to be repeated with this
}
