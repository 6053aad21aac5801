package broker_test

import (
	"strings"
	"testing"

	"weir/models"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/providers"
	"weir/pool/timeline"
)

// with is the world with other objectives.
func (o *world) with(objectives broker.Objectives) *world {
	rules := broker.DefaultRules
	rules.Objectives = objectives
	return &world{World: o.World, Service: broker.New(o.Store, o.Access, o.Pool, rules), member: o.member, actor: o.actor}
}

// Of what is available at the same time, the models that a task type prefers are reserved
// first, and others when those are not available.
func TestPreferredModels(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		o.Enlist(t, append(pooltest.Machine(1), providers.DeviceReport{UUID: "GPU-other", Index: 1, Minor: 1, Model: "NVIDIA L4", MemoryMiB: 80_000, Simulated: true}))
		o = o.with(broker.Objectives{Models: map[models.TaskType][]string{models.TaskBatch: {"t4", "l4"}}})
		in := o.ask(60)
		in.TaskType = models.TaskBatch
		first, second := o.reserve(t, in), o.reserve(t, in)
		if a, b := first.Grants[0].Model, second.Grants[0].Model; a != "NVIDIA L4" || b == "NVIDIA L4" {
			t.Errorf("reserved are %s and %s", a, b)
		}
		if why := first.Explanation.String(); !strings.Contains(why, "the task type prefers t4, l4, then GPUs with the least capacity left") {
			t.Error(why)
		}
		in.TaskType, in.Cores = models.TaskTraining, 10
		if r := o.reserve(t, in); r.Grants[0].DeviceID != min(first.Grants[0].DeviceID, second.Grants[0].DeviceID) {
			t.Errorf("a task type that prefers nothing has %+v", r.Grants)
		}
	})
}

// Spread reserves the GPU with the most left, and pack the one with the least.
func TestReservationPlacement(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		for objective, same := range map[timeline.Objective]bool{timeline.Pack: true, timeline.Spread: false} {
			o := o.with(broker.Objectives{Placement: objective})
			in := o.ask(10)
			in.From = o.hour(1 + int(objective)*2)
			a, b := o.reserve(t, in), o.reserve(t, in)
			if got := a.Grants[0].DeviceID == b.Grants[0].DeviceID; got != same {
				t.Errorf("by objective %d, they have one GPU: %t", objective, got)
			}
		}
	})
}
