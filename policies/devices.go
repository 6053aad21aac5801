package policies

import (
	"encoding/json"

	"weir/models"
)

// DeviceKey is the purpose of the [Key] of devices that have signed in.
const DeviceKey = "weir devices that have signed in"

// maxDevices is how many of what a browser keeps are tried: without TLS, others can plant some.
const maxDevices = 16

// device is a browser in which somebody has signed in to an account. The end of the account's
// sessions, such as by another password, ends it.
type device struct {
	ID               string
	User, Generation int64
}

// Device returns what the browser keeps in which u has signed in with a password.
func (a *Accounts) Device(u models.User) (string, error) {
	raw, err := json.Marshal(device{NewSecret(), u.ID, u.SessionGeneration})
	return a.DeviceKey.Encrypt(string(raw)), err
}

// knownDevice is the ID of a browser in which u has signed in before; empty for others.
func (a *Accounts) knownDevice(u models.User, kept []string) string {
	for _, k := range kept[:min(len(kept), maxDevices)] {
		var d device
		if raw, err := a.DeviceKey.Decrypt(k); err != nil || json.Unmarshal([]byte(raw), &d) != nil {
			continue
		}
		if d.User == u.ID && d.Generation == u.SessionGeneration {
			return d.ID
		}
	}
	return ""
}
