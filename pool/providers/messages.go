package providers

import "time"

// Heartbeat is the request that an agent sends every few seconds.
type Heartbeat struct {
	Token   string        `json:"token"`             // of the last response
	Confirm string        `json:"confirm,omitempty"` // from the response to this heartbeat
	GPUCode string        `json:"gpu_code"`
	Devices DeviceReports `json:"devices"`
	Samples Samples       `json:"samples,omitempty"` // since the last successful heartbeat
	Faults  Faults        `json:"faults,omitempty"`
	// Latencies are those measured since the last heartbeat, successful or not.
	Latencies Latencies `json:"latencies,omitempty"`
}

// Orders are the response to a heartbeat.
type Orders struct {
	Token   string        `json:"token"`             // for the next heartbeat; invalidates older ones
	Confirm string        `json:"confirm,omitempty"` // if set, the heartbeat was not processed; repeat it with this value
	State   string        `json:"state"`             // the provider's
	Reason  string        `json:"reason,omitempty"`
	Every   time.Duration `json:"every"`           // between heartbeats
	Renew   bool          `json:"renew,omitempty"` // the certificate is due for renewal
	Devices []DeviceOrder `json:"devices,omitempty"`
	Probes  []Probe       `json:"probes,omitempty"` // to which the latency is measured
}

// Probe is an address in a client zone.
type Probe struct {
	Zone    string `json:"zone"`
	Address string `json:"address"` // host:port
}

// Latency is how long it takes to open a connection to the address of a client zone.
type Latency struct {
	Zone string        `json:"zone"`
	Time time.Duration `json:"time"`
}

// Redemption is the request to enroll with a code.
type Redemption struct {
	Code    string        `json:"code"`
	CSR     string        `json:"csr"`     // PEM
	Name    string        `json:"name"`    // host name
	Machine string        `json:"machine"` // see MachineDigest
	Devices DeviceReports `json:"devices"`
}

// Enrolled is the response to an enrollment.
type Enrolled struct {
	Provider    string `json:"provider"` // the name
	State       string `json:"state"`
	Certificate string `json:"certificate"` // PEM
	Authority   string `json:"authority"`   // PEM
	Token       string `json:"token"`       // of the first heartbeat

	Machine string `json:"machine,omitempty"` // the machine's digest in the portal, if it differs from the agent's
}

// Joining is the request to enroll with the service account token of a pod.
type Joining struct {
	Token   string        `json:"token"`
	CSR     string        `json:"csr"`     // PEM
	Machine string        `json:"machine"` // see MachineDigest; identifies a provider that was enrolled with a code
	Devices DeviceReports `json:"devices"`
}

// Renewal is the request for a certificate for a new key.
type Renewal struct {
	CSR     string `json:"csr"`               // PEM
	Token   string `json:"token"`             // of the last response to a heartbeat; stays valid
	Confirm string `json:"confirm,omitempty"` // from the response to this request
}

// Renewed is the response to a Renewal.
type Renewed struct {
	Certificate string `json:"certificate"`       // PEM
	Confirm     string `json:"confirm,omitempty"` // if set, no certificate was issued; repeat the request with this value
}
