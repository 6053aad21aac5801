package providers

import (
	"strconv"
	"time"

	"weir/models"
)

// Limits of the requests of agents.
const (
	maxProcesses = 1000 // of one sample
	maxWord      = 200  // characters
	maxList      = 128  // profiles, peers
	maxAge       = 30 * 24 * time.Hour
	maxAmount    = 1 << 40
	maxProblems  = 20 // reported for one heartbeat
	maxLatency   = 10 * time.Second
)

// checkMachine validates the digest and the devices of a machine.
func checkMachine(digest string, devices []DeviceReport, p *models.Problems) {
	if !isDigest(digest) {
		p.Add("machine", "must be the digest of the machine ID, 64 hexadecimal digits")
	}
	checkReports(devices, p)
}

// checkHeartbeat validates a heartbeat.
func checkHeartbeat(b Heartbeat) error {
	var p models.Problems
	if len(b.Token) > maxWord || len(b.Confirm) > maxWord || len(b.GPUCode) > maxWord {
		p.Add("token", "must be at most %d characters; has %d", maxWord, max(len(b.Token), len(b.Confirm), len(b.GPUCode)))
	}
	checkReports(b.Devices, &p)
	if len(b.Samples) > maxSamples {
		p.Add("samples", "must have at most %d entries; has %d", maxSamples, len(b.Samples))
		return p.Err()
	}
	if len(b.Faults) > maxFaults {
		p.Add("faults", "must have at most %d entries; has %d", maxFaults, len(b.Faults))
		return p.Err()
	}
	for i, l := range b.Latencies {
		if l.Time < 0 || l.Time > maxLatency {
			p.Add(index("latencies", i)+".time", "must be from 0 to %d seconds", int64(maxLatency/time.Second))
		}
	}
	for i, s := range b.Samples {
		if checkSample(s, index("samples", i), &p); len(p) > maxProblems {
			break
		}
	}
	for i, f := range b.Faults {
		if len(p) > maxProblems {
			break
		}
		c := checker{index("faults", i), &p}
		c.word("uuid", f.UUID)
		c.amount("xid", f.XID)
		c.amount("age", int64(f.Age/time.Second))
	}
	return p.Err()
}

func checkSample(s Sample, at string, p *models.Problems) {
	c := checker{at, p}
	c.word("uuid", s.UUID)
	if s.Age < 0 || s.Age > maxAge {
		p.Add(at+".age", "must be from 0 to %d seconds", int64(maxAge/time.Second))
	}
	if s.Utilisation < 0 || s.Utilisation > 100 {
		p.Add(at+".utilisation", "must be from 0 to %d percent", 100)
	}
	c.amount("memory_used_mib", s.MemoryUsedMiB)
	c.amount("temperature", s.Temperature)
	c.amount("power_mw", s.PowerMW)
	if len(s.Processes) > maxProcesses {
		p.Add(at+".processes", "must have at most %d entries; has %d", maxProcesses, len(s.Processes))
		return
	}
	for i, proc := range s.Processes {
		c := checker{index(at+".processes", i), p}
		c.word("name", proc.Name)
		c.amount("pid", proc.PID)
		c.amount("memory_mib", proc.MemoryMiB)
	}
}

// checkReports validates devices: UUIDs are unique, and the GPU of an instance is
// reported too.
func checkReports(reports []DeviceReport, p *models.Problems) {
	if len(reports) > maxDevices {
		p.Add("devices", "must have at most %d entries; has %d", maxDevices, len(reports))
		return
	}
	physical, seen := map[string]bool{}, map[string]bool{}
	for _, r := range reports {
		physical[r.UUID] = physical[r.UUID] || r.Parent == ""
	}
	for i, r := range reports {
		at := index("devices", i)
		switch {
		case r.UUID == "":
			p.Add(at+".uuid", "must not be empty")
		case seen[r.UUID]:
			p.Add(at+".uuid", "appears twice")
		case r.Parent != "" && !physical[r.Parent]:
			p.Add(at+".parent", "must be one of the reported GPUs")
		}
		seen[r.UUID] = true
		checkReport(r, at, p)
	}
}

func checkReport(r DeviceReport, at string, p *models.Problems) {
	c := checker{at, p}
	for name, word := range map[string]string{"uuid": r.UUID, "model": r.Model, "architecture": r.Architecture, "pci": r.PCIBusID,
		"driver": r.Driver, "sharing": r.Sharing, "parent": r.Parent, "profile": r.Profile, "ecc": r.ECC} {
		c.word(name, word)
	}
	models.CheckText(at+".trouble", r.Trouble, 1000, p)
	models.CheckText(at+".sharing_error", r.SharingError, 1000, p)
	for name, list := range map[string][]string{"mig_profiles": r.MIGProfiles, "peers": r.Peers} {
		if len(list) > maxList {
			p.Add(at+"."+name, "must have at most %d entries; has %d", maxList, len(list))
			continue
		}
		for _, word := range list {
			c.word(name, word)
		}
	}
	c.amount("memory_mib", r.MemoryMiB)
	c.amount("ecc_errors", r.ECCErrors)
	c.amount("index", int64(r.Index))
	c.amount("minor", int64(r.Minor)+1) // -1 when unknown
	c.amount("numa", int64(r.NUMA)+1)   // -1 when unknown
	if r.Cores < 0 || r.Cores > 100 {
		p.Add(at+".cores", "must be from 0 to %d; 0 lends all", 100)
	}
}

func index(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// checker validates fields of one entry of a list.
type checker struct {
	at       string
	problems *models.Problems
}

func (c checker) word(name, text string) {
	models.CheckText(c.at+"."+name, text, maxWord, c.problems)
}

func (c checker) amount(name string, n int64) {
	if n < 0 || n > maxAmount {
		c.problems.Add(c.at+"."+name, "must be from 0 to %d", int64(maxAmount))
	}
}
