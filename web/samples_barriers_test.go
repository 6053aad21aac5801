package web

import "weir/models"

// barrierSamples are the page of barriers in its states.
func barrierSamples() []sample {
	return []sample{
		{"barriers", "/barriers", &li, BarriersPage(sampleBarriers())},
		{"barriers-none", "/barriers", &li, BarriersPage(BarriersView{})},
		{"barriers-refused", "/barriers", &li, BarriersPage(BarriersView{Form: Form{Values: map[string]string{"ptx": BarriersExample}}.Refuse(models.Invalid("ptx", "line %d: %s", 9, models.Say("the comment has no end")))})},
	}
}

// sampleBarriers is an allocation of two segments, the second with all that a barrier can say.
func sampleBarriers() BarriersView {
	use := func(line int, op string, warps ...int) models.BarrierUse {
		return models.BarrierUse{Line: line, Operation: op, Warps: warps}
	}
	one := models.BarrierSegment{Number: 1, From: 14, Until: 22, Strong: "16", Method: "intervals", Used: 2, Overlap: []string{"first", "second"}, Steps: 2, Barriers: []models.KernelBarrier{
		{Name: "first", Threads: 64, Producers: []models.BarrierUse{use(14, "arrive", 0)}, Consumers: []models.BarrierUse{use(18, "sync", 1, 2, 3, 5)}},
		{Name: "second", Physical: 1, Until: 1, Threads: 64, Producers: []models.BarrierUse{use(15, "arrive", 0)}, Consumers: []models.BarrierUse{use(19, "sync", 1)}},
		{Name: "16", From: 1, Until: 1, After: []string{"first"}, Reuses: "first", Consumers: []models.BarrierUse{use(22, "sync")}},
	}}
	two := models.BarrierSegment{Number: 2, From: 24, Until: 28, Method: "first_fit", Used: 1, Overlap: []string{"fourth"}, Steps: 1, Barriers: []models.KernelBarrier{
		{Name: "fourth", Physical: 15, Threads: -1, Unknown: true, Assumed: true, Pending: true, Producers: []models.BarrierUse{use(24, "arrive")}},
	}}
	return BarriersView{Form: Form{Values: map[string]string{"ptx": BarriersExample, "physical": "16"}}, Done: true,
		Report: models.BarrierReport{Physical: 16, Kernels: []models.BarrierKernel{{Name: "pipeline", Line: 6, Logical: 4, Used: 3, Segments: []models.BarrierSegment{one, two}}}}}
}
