package pool

import (
	"weir/models"
	"weir/pool/placement"
)

// DescribeDemand words a demand's GPUs.
func DescribeDemand(d models.Demand) models.Text {
	if d.GPUs == 1 {
		return models.Say("%d GPU cores", d.Cores)
	}
	return models.Say("%d × %d GPU cores", d.GPUs, d.Cores)
}

// explainChoice words where a demand goes and what decided it: the criterion
// on which the second best machine did worse, where there was one.
func explainChoice(node, devices string, e placement.Explanation) models.Text {
	if e.Nodes > 1 {
		return models.Say("%s on %s: %s of %d machines with %d fitting devices; %s; %d cores stay free there.",
			devices, node, describeAim(e.Policy), e.Nodes, e.Devices, describeDecider(e.RunnerUp), e.LeftoverCores)
	}
	return models.Say("%s on %s: %s of %d fitting devices; %d cores stay free there.",
		devices, node, describeAim(e.Policy), e.Devices, e.LeftoverCores)
}

// describeAim says what a policy looks for.
func describeAim(policy string) models.Text {
	switch policy {
	case "weir", "fgd":
		return models.Say("the least fragmentation")
	case "random":
		return models.Say("drawn by lot")
	case "dot-product":
		return models.Say("the fullest")
	case "clustering":
		return models.Say("beside demands of the same size")
	case "packing":
		return models.Say("the fewest newly opened")
	default:
		return models.Say("the tightest fit")
	}
}

func describeDecider(r placement.RunnerUp) models.Text {
	switch r.LostBy {
	case placement.SplitsIdle:
		return models.Say("the next best would split idle devices")
	case placement.NewToProject:
		return models.Say("the next best holds less of the project already")
	case placement.Fragmentation:
		return models.Say("the next best would leave less for demands like those of the past")
	case placement.Unlinked:
		return models.Say("the next best has %d more pairs of devices without NVLink", r.Margin)
	case placement.LeftoverCores:
		return models.Say("the next best would leave %d more cores over", r.Margin)
	case placement.LeftoverMemory:
		return models.Say("the next best would leave %s more memory over", models.FormatMiB(r.Margin))
	case placement.OpensNode, placement.OpensDevices:
		return models.Say("the next best would open idle devices")
	case placement.OtherSizes:
		return models.Say("the next best holds demands of other sizes")
	case placement.NodeFree:
		return models.Say("the next best has %d more cores free", r.Margin)
	case placement.Lot:
		return models.Say("the lot decided")
	default:
		return models.Say("the next best is as good")
	}
}

// explainRefusal words why a demand cannot be placed: the nearest reason
// first, then one line per reason with the devices it turned away.
func explainRefusal(r placement.Refusal, d placement.Demand) (models.Text, []models.Text) {
	var lines []models.Text
	for reason, n := range r.Counts {
		if n > 0 && placement.Reason(reason) != placement.Fits {
			lines = append(lines, models.Say("%d × device: %s", n, describeReason(placement.Reason(reason), r, d)))
		}
	}
	return describeReason(r.Reason, r, d), lines
}

func describeReason(reason placement.Reason, r placement.Refusal, d placement.Demand) models.Text {
	switch reason {
	case placement.Invalid:
		return models.Say("the demand's own numbers are impossible")
	case placement.NoDevices:
		return models.Say("the pool has no GPUs")
	case placement.NodeNotAccepting:
		return models.Say("the machine does not lend GPUs now")
	case placement.Unreachable:
		return models.Say("workspaces cannot run on the machine")
	case placement.NotLent:
		return models.Say("its owner does not lend it to this project now")
	case placement.OneGPU:
		return models.Say("a MIG instance or a GPU under MPS serves requests for one GPU only, and %d were asked for", r.Needed)
	case placement.Changing:
		return models.Say("its sharing mode is being changed")
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
