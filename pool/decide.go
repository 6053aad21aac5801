package pool

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
)

// QueueEntries lists the queue in its order, each with the
// decision as things are before any of them is started.
func (s *Scheduler) QueueEntries(q *store.Queries) ([]models.QueueEntry, error) {
	st, err := s.read(q)
	if err != nil {
		return nil, err
	}
	waiting := st.queueWith()
	entries := make([]models.QueueEntry, len(waiting.ranked))
	var reserved []int64
	within := map[time.Duration]snapshot{}
	for i, r := range waiting.ranked {
		c := waiting.byID[r.ID].Claim
		snap, known := within[c.TimeLimit()]
		if !known {
			snap = st.within(c.TimeLimit()).snapshot
			within[c.TimeLimit()] = snap
		}
		entries[i] = models.QueueEntry{Claim: c, Decision: s.decide(snap, r.Demand, c.Demand, reserved)}
		reserved = st.reserve(r, c.TimeLimit(), reserved)
	}
	return entries, nil
}

// decide is the decision itself, over a snapshot that does not change. On the
// providers that are reserved for requests that come first nothing is placed.
func (s *Scheduler) decide(snap snapshot, d placement.Demand, requested models.Demand, reserved []int64) models.Decision {
	if choice, ok := s.find(snap, d, reserved); ok {
		return snap.grant(models.OutcomeGranted, choice, d)
	}
	whole := snap.placement(asItIs)
	refusal := placement.Refuse(whole, d)
	if refusal == nil {
		return models.Decision{Outcome: models.OutcomeDelayed,
			Explanation: models.Say("a request that has waited longer than %d minutes has precedence", int64(reserveAfter/time.Minute))}
	}
	reason, reasons := explainRefusal(*refusal, d)
	if open, kept := withoutReserved(whole); kept && placement.Refuse(open, d) == nil {
		reason = models.Say("%s; the rest is reserved", reason)
	}
	if never := placement.Refuse(snap.placement(onceAllLend), d); never != nil {
		text, lasting := explainRefusal(*never, d) // not those of now, whose numbers differ
		return models.Decision{Outcome: models.OutcomeRefused, Explanation: text, Reasons: lasting}
	}
	open := placement.Snapshot{Nodes: slices.DeleteFunc(whole.Nodes, func(n placement.Node) bool { return slices.Contains(reserved, n.ID) })}
	cores, memory := placement.Largest(open, d)
	if cores == 0 {
		return models.Decision{Outcome: models.OutcomeDelayed, Explanation: reason, Reasons: reasons}
	}
	d.Cores, d.MemoryMiB = cores, memory
	fewer := requested
	fewer.Cores, fewer.GPUMemoryMiB = cores, memory
	choice, _ := s.find(snap, d, reserved)
	decision := snap.grant(models.OutcomePartial, choice, d)
	decision.Fewer, decision.Explanation, decision.Reasons = &fewer, reason, reasons
	return decision
}

func (s snapshot) grant(outcome string, c placement.Choice, d placement.Demand) models.Decision {
	decision := models.Decision{Outcome: outcome, EndsBy: s.until}
	if d.GPUs == 0 {
		decision.Explanation = models.Say("No GPUs were requested.")
		return decision
	}
	decision.Provider = models.ProviderID{ID: c.Node, Name: s.machines[s.index[c.Node]].Name}
	var labels []string
	for _, g := range c.Devices {
		dev, _ := s.device(g.Device)
		decision.Grants = append(decision.Grants, models.Grant{Device: dev, Cores: g.Cores, MemoryMiB: g.MemoryMiB,
			Enforcement: enforcement(dev, g.Cores)})
		labels = append(labels, "GPU "+strconv.FormatInt(dev.Number, 10))
	}
	decision.Explanation = explainChoice(decision.Provider.Name, strings.Join(labels, ", "), c.Explanation)
	return decision
}

// enforcement is how a share is isolated from others, by the sharing mode in
// effect on the device, not the one requested for it.
func enforcement(d models.Device, cores int64) string {
	switch {
	case d.ParentID != nil:
		return models.EnforcedMIG
	case cores == placement.Whole || d.Exclusive():
		return models.EnforcedExclusive
	case d.Sharing == models.SharingMPS && d.Applied == models.SharingMPS:
		return models.EnforcedMPS
	default:
		return models.EnforcedAdvisory
	}
}
