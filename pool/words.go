package pool

import (
	"strconv"

	"weir/models"
	"weir/pool/placement"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Words describes a demand's GPUs.
func Words(d models.Demand) models.Text {
	if d.GPUs == 1 {
		return models.Say("%d GPU cores", d.Cores)
	}
	return models.Say("%d × %d GPU cores", d.GPUs, d.Cores)
}

func explainChoice(node, devices string, e placement.Explanation) models.Text {
	if e.Nodes > 1 {
		return models.Say("%s on %s: the tightest fit of %d machines with %d fitting devices; %d cores stay free there.",
			devices, node, e.Nodes, e.Devices, e.LeftoverCores)
	}
	return models.Say("%s on %s: the tightest fit of %d fitting devices; %d cores stay free there.",
		devices, node, e.Devices, e.LeftoverCores)
}

// explainRefusal words why a demand cannot be placed: the nearest reason
// first, then one line per reason with the devices it turned away.
func explainRefusal(r placement.Refusal, d placement.Demand) (models.Text, []models.Text) {
	var lines []models.Text
	for reason, n := range r.Counts {
		if n > 0 && placement.Reason(reason) != placement.Fits {
			lines = append(lines, models.Say("%d × device: %s", n, reasonWords(placement.Reason(reason), r, d)))
		}
	}
	return reasonWords(r.Reason, r, d), lines
}

func reasonWords(reason placement.Reason, r placement.Refusal, d placement.Demand) models.Text {
	switch reason {
	case placement.Invalid:
		return models.Say("the demand's own numbers are impossible")
	case placement.NoDevices:
		return models.Say("the pool has no GPUs")
	case placement.NodeNotAccepting:
		return models.Say("the machine does not lend GPUs now")
	case placement.WrongModel:
		return models.Say("no device in the pool is a %s", d.Model)
	case placement.Unhealthy:
		return models.Say("the driver does not report the device any more")
	case placement.ExclusiveHeld:
		return models.Say("exclusive, and held")
	case placement.OtherProject:
		return models.Say("another project holds a part, and an administrator has not allowed mixing")
	case placement.TooFewCores:
		return models.Say("%d GPU cores asked of one device; the best that may be used has %d free", d.Cores, r.BestCores)
	case placement.TooLittleMemory:
		return models.Say("%s of GPU memory asked of one device; the best has %s free", models.FormatMiB(d.MemoryMiB), models.FormatMiB(r.BestMemoryMiB))
	case placement.TooFewDevices:
		return models.Say("%d GPUs asked on one machine; the best has %d that fit", r.Needed, r.BestDevices)
	default:
		return models.Say("unknown reason")
	}
}
