package providers

import (
	"bytes"
	"encoding/json"
	"time"

	"weir/models"
)

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

// Limits of the lists.
const (
	maxDevices = 128 // physical GPUs and MIG instances
	maxSamples = 100_000
	maxFaults  = 10_000
)

// Lists of the requests of agents. Reading one from JSON stops at its limit: a few
// bytes of text need much more memory.
type (
	DeviceReports []DeviceReport
	Samples       []Sample
	Faults        []Fault
	Latencies     []Latency
)

// UnmarshalJSON reads at most 128 devices.
func (l *DeviceReports) UnmarshalJSON(raw []byte) error {
	return readList((*[]DeviceReport)(l), raw, "devices", maxDevices)
}

// UnmarshalJSON reads at most 100 000 samples.
func (l *Samples) UnmarshalJSON(raw []byte) error {
	return readList((*[]Sample)(l), raw, "samples", maxSamples)
}

// UnmarshalJSON reads at most 10 000 faults.
func (l *Faults) UnmarshalJSON(raw []byte) error {
	return readList((*[]Fault)(l), raw, "faults", maxFaults)
}

// UnmarshalJSON reads at most 32 latencies.
func (l *Latencies) UnmarshalJSON(raw []byte) error {
	return readList((*[]Latency)(l), raw, "latencies", models.MaxClientZones)
}

// readList reads a JSON list of at most the given length.
func readList[T any](list *[]T, raw []byte, field string, most int) error {
	*list = nil
	d := json.NewDecoder(bytes.NewReader(raw))
	switch open, err := d.Token(); {
	case err != nil || open == nil: // null
		return err
	case open != json.Delim('['):
		return models.Invalid(field, "must be a list")
	}
	for d.More() {
		if len(*list) == most {
			return models.Invalid(field, "must have at most %d entries", most)
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		*list = append(*list, v)
	}
	return nil
}
