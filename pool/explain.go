package pool

import (
	"weir/models"
	"weir/pool/placement"
)

// DescribeDemand describes the GPUs of a demand.
func DescribeDemand(d models.Demand) models.Text {
	if d.GPUs == 1 {
		return models.Say("%d GPU cores", d.Cores)
	}
	return models.Say("%d × %d GPU cores", d.GPUs, d.Cores)
}

// explainChoice explains a choice: what the policy optimizes, and the
// criterion on which the second best machine was worse.
func explainChoice(node, devices string, e placement.Explanation) models.Text {
	aim, decider := describeAim(e.Policy), describeDecider(e.RunnerUp)
	switch {
	case e.Nodes > 1 && e.LeftoverCores == 0:
		return models.Say("%s on %s: %s of %d GPUs on %d machines; now full; %s.", devices, node, aim, e.Devices, e.Nodes, decider)
	case e.Nodes > 1:
		return models.Say("%s on %s: %s of %d GPUs on %d machines; %d cores remain there; %s.",
			devices, node, aim, e.Devices, e.Nodes, e.LeftoverCores, decider)
	case e.LeftoverCores == 0:
		return models.Say("%s on %s: %s of %d GPUs; now full.", devices, node, aim, e.Devices)
	}
	return models.Say("%s on %s: %s of %d GPUs; %d cores remain there.", devices, node, aim, e.Devices, e.LeftoverCores)
}

// describeAim describes what a policy optimizes.
func describeAim(policy string) models.Text {
	switch policy {
	case placement.Weir:
		return models.Say("lowest fragmentation")
	case placement.Spread:
		return models.Say("lowest load")
	default:
		return models.Say("best fit")
	}
}

// Decisions from when the pool offered other policies have these sentences.
var _ = []models.Text{
	models.Say("random choice"), models.Say("highest utilization"), models.Say("next to requests of the same size"),
	models.Say("fewest newly used devices"), models.Say("the next best option would use idle devices"),
	models.Say("the next best option has requests of other sizes"), models.Say("the next best option has %d more GPU cores available", 0),
	models.Say("chosen at random"),
	models.Say("%s on %s: %s among %d machines with %d suitable devices; %s; %d GPU cores remain available there.", "", "", "", 0, 0, "", 0),
	models.Say("%s on %s: %s among %d suitable devices; %d GPU cores remain available there.", "", "", "", 0, 0),
}

func describeDecider(r placement.RunnerUp) models.Text {
	switch r.LostBy {
	case placement.SplitsIdle:
		return models.Say("the next best option would split idle devices")
	case placement.NewToProject:
		return models.Say("the next best option has fewer shares of this project")
	case placement.Fragmentation:
		return models.Say("the next best option would leave less space for typical requests")
	case placement.Unlinked:
		return models.Say("the next best option has %d more device pairs without NVLink", r.Margin)
	case placement.DeviceLoad:
		return models.Say("the next best option has %d more GPU cores in use", r.Margin)
	case placement.MachineLoad:
		return models.Say("the next best option is on a machine with more GPU cores in use")
	case placement.LeftoverCores:
		return models.Say("the next best option would leave %d more GPU cores unused", r.Margin)
	case placement.LeftoverMemory:
		return models.Say("the next best option would leave %s more GPU memory unused", models.FormatMiB(r.Margin))
	default:
		return models.Say("the next best option is equivalent")
	}
}

// explainRefusal explains why a demand cannot be placed: the reason nearest to
// fitting, and one line for each reason with the number of devices.
func explainRefusal(r placement.Refusal, d placement.Demand) (models.Text, []models.Text) {
	var lines []models.Text
	for reason, n := range r.Counts {
		if n > 0 && placement.Reason(reason) != placement.Fits {
			lines = append(lines, models.Say("%d devices: %s", n, describeReason(placement.Reason(reason), r, d)))
		}
	}
	return describeReason(r.Reason, r, d), lines
}

func describeReason(reason placement.Reason, r placement.Refusal, d placement.Demand) models.Text {
	switch reason {
	case placement.Invalid:
		return models.Say("the requested amounts are invalid")
	case placement.NoDevices:
		return models.Say("the pool has no GPUs")
	case placement.NodeNotAccepting:
		return models.Say("the machine is not lending GPUs now")
	case placement.Unreachable:
		return models.Say("the machine cannot run workspaces")
	case placement.NotLent:
		return models.Say("its owner does not lend it to this project now")
	case placement.OneGPU:
		return models.Say("a MIG instance or a GPU under MPS can serve only single-GPU requests; %d GPUs were requested", r.Needed)
	case placement.Changing:
		return models.Say("its sharing mode is changing")
	case placement.WrongModel:
		return models.Say("the pool has no %s device", d.Model)
	case placement.Unhealthy:
		return models.Say("the GPU is unhealthy, or the driver no longer reports it")
	case placement.ExclusiveInUse:
		return models.Say("exclusive and in use")
	case placement.OtherProject:
		return models.Say("in use by another project, and mixing is not allowed")
	case placement.TooFewCores:
		return models.Say("%d GPU cores requested on one device; at most %d available", d.Cores, r.BestCores)
	case placement.TooLittleMemory:
		return models.Say("%s of GPU memory requested on one device; at most %s available", models.FormatMiB(d.MemoryMiB),
			models.FormatMiB(r.BestMemoryMiB))
	case placement.HostInUse:
		return models.Say("the machine does not have enough CPU or memory available")
	case placement.TooFewDevices:
		return models.Say("%d GPUs requested on one machine; at most %d available", r.Needed, r.BestDevices)
	default:
		return models.Say("unknown reason")
	}
}
