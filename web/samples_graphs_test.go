package web

import "weir/models"

// graphSamples are the page of task graphs in its states.
func graphSamples() []sample {
	refused := Form{Values: map[string]string{"graph": GraphsExample, "cpus": "8", "utilization": "x"}}
	return []sample{
		{"graphs", "/graphs", &li, GraphsPage(sampleGraph(models.GraphReduced))},
		{"graphs-serial", "/graphs", &li, GraphsPage(sampleGraph(models.GraphSerial))},
		{"graphs-none", "/graphs", &li, GraphsPage(GraphsView{Form: Form{Values: GraphDefaults()}})},
		{"model-graph", "/projects/1/files/graph", &li, ModelGraphPage(sampleModelGraph(sampleFiles()))},
		{"graphs-refused", "/graphs", &li, GraphsPage(GraphsView{Form: refused.Refuse(models.InvalidFields(models.Field{Name: "graph", Reason: models.Say("branch %s has no operators", "load")},
			models.Field{Name: "utilization", Reason: models.Say("must be from %g%% to %g%%", 0.0, 100.0)}))})},
	}
}

// sampleGraph is a plan of two stages, the second with all that a share can say.
func sampleGraph(mode models.GraphMode) GraphsView {
	p := models.GraphPlan{Name: "training", CPUs: 8, Utilization: 60, SecondThreshold: 50, FirstThreshold: 70, ReducedCPUs: 6, SerialCPUs: 4, Mode: mode, Budget: 2,
		Makespan: 90, Serial: 150, Equal: 100, Relative: mode == models.GraphSerial,
		Text: models.Say("Utilization %g%% is between the thresholds, %g%% and %g%%: branches share %g%% of %d CPUs, %.1f, rounded to %d.", 60.0, 50.0, 70.0, 40.0, 6, 2.4, 2),
		Stages: []models.GraphStage{
			{Until: 60, Shares: []models.GraphShare{{Branch: "text", Operators: []string{"read", "tokenize"}, Seconds: 50, Exact: 1.09, CPUs: []int{1}, Until: 50},
				{Branch: "images", Operators: []string{"decode"}, Seconds: 60, Exact: 1.31, CPUs: []int{4}, Until: 60}}},
			{From: 60, Until: 90, Shares: []models.GraphShare{{Branch: "train", After: []string{"text", "images"}, Operators: []string{"fit"}, Seconds: 40, Assumed: true, Exact: 2.4, CPUs: []int{1, 4}, Until: 90}}},
		}}
	return GraphsView{Form: Form{Values: map[string]string{"graph": GraphsExample, "cpus": "8", "utilization": "60"}}, Plan: p, Done: true}
}

// sampleModelGraph is a model of two branches.
func sampleModelGraph(files FilesView) ModelGraphView {
	files.Directory = FileRow{Name: "vision.onnx", Path: "/notebook/1/project_model/vision.onnx", Kind: "file", Access: models.AccessRead}
	g := sampleGraph(models.GraphReduced)
	conv, relu := models.OperatorKind{Kind: "Conv", Operators: 2, FLOPs: 2.5e9}, models.OperatorKind{Kind: "Relu", Operators: 3, FLOPs: 1000}
	graph := models.ModelGraph{Name: "vision", Operators: 5, FLOPs: 2.5e9, Kinds: []models.OperatorKind{conv, relu}, Unknown: []string{"Strange"},
		Branches: []models.ModelBranch{{Branch: "text", Operators: 3, FLOPs: 2e9, Kinds: []models.OperatorKind{conv, relu}}, {Branch: "images", Operators: 2, FLOPs: 5e8}}, Plan: g.Plan}
	return ModelGraphView{FilesView: files, Form: g.Form, Graph: graph, Done: true}
}
