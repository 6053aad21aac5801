package web

import (
	"time"

	"weir/models"
)

// sampleDeployment is one of two parts, of which the first is loaded.
func sampleDeployment(state models.DeploymentState) DeploymentDetail {
	d := DeploymentDetail{DeploymentRow: DeploymentRow{CanStop: state == models.DeploymentServing || state == models.DeploymentDeploying,
		DeploymentView: models.DeploymentView{ProjectName: "vision", UserName: "Li Wei", EnvironmentName: "PyTorch 2.9 · Python 3.12",
			Deployment: models.Deployment{ID: 3, ProjectID: 1, Name: "llama", UpdateStrategy: models.UpdateRolling, Path: "/notebook/1/project_model/llama", ServiceType: "text-generation", State: state,
				Batch: 2, Context: 4096, Demand: models.Demand{GPUs: 2, Cores: 100, GPUMemoryMiB: 40 << 10, CPUMilli: 2000, MemoryMiB: 90 << 10},
				Plan: models.ModelPlan{Reasons: []models.Text{models.Say("It is cut between layers.")}, Parts: []models.ModelPart{{First: "input", Last: "model.layers.39", Total: 35 << 30}, {First: "model.layers.40", Last: "output", Total: 36 << 30}}}}},
		Parts: []models.DeploymentPart{{Number: 0, State: models.PartReady, Library: "torch", DeviceType: "cuda", MaxMemory: 34<<30 + 512<<20}, {Number: 1, State: models.PartLoading, Progress: 40, Restarts: 1}}},
		Devices: []Device{myDevice(), myDevice()},
		Events:  []models.DeploymentEvent{{At: ago(9 * time.Minute), Message: models.Say("Part %d is being loaded.", int64(2))}}}
	switch state {
	case models.DeploymentServing:
		d.Parts[1] = models.DeploymentPart{Number: 1, State: models.PartReady, Library: "torch"}
		d.Metrics = sampleDeploymentMetrics(models.TaskTextGeneration)
	case models.DeploymentFailed:
		d.Reason, d.Devices = models.Say("The deployment failed: %s", models.Say("the parts could not be written")), nil
	}
	return d
}

// sampleDeploymentMetrics are those of an hour in whose second half requests were sent.
func sampleDeploymentMetrics(task models.ModelTask) models.DeploymentMetrics {
	m := models.DeploymentMetrics{Deployment: models.Deployment{Task: task}, Span: "hour", From: ago(time.Hour), Until: now, At: now, Parts: make([]models.PartTime, 2),
		Steps: make([]models.RequestMetrics, 60)}
	add := func(step int, measure models.DeploymentMeasure, d time.Duration, n int64) {
		c := models.DeploymentCount{Measure: measure, Bucket: models.DurationBucket(d), Count: n, Millis: n * d.Milliseconds()}
		m.Add(step, c)
	}
	for i := 30; i < 60; i++ {
		load := time.Duration(1 + i%7)
		add(i, models.MeasureDuration, load*700*time.Millisecond, int64(3*load))
		add(i, models.MeasureDuration, load*1900*time.Millisecond, 1)
		add(i, models.MeasureFirstToken, load*40*time.Millisecond, int64(3*load))
		add(i, models.MeasureOutputs, 0, int64(800*load))
		for part := range int64(2) {
			m.Add(i, models.DeploymentCount{Measure: models.MeasurePartActive, Bucket: models.PartBucket(m.Deployment.ID, part), Count: 40_000})
			m.Add(i, models.DeploymentCount{Measure: models.MeasurePartBusy, Bucket: models.PartBucket(m.Deployment.ID, part), Count: 3000 * int64(load) * (part + 1) / 2})
		}
		add(i, models.MeasureInputTokens, 0, int64(300*load))
	}
	add(40, models.MeasureFailed, 0, 2)
	add(41, models.MeasureRejected, 0, 5)
	return m
}

func deploymentSamples() []sample {
	form := DeployForm{Projects: []Option{{"1", "vision"}}, Environments: []Option{{Label: "the first suitable one"}, {"1", "PyTorch 2.9"}},
		ServiceTypes: []Option{{Label: "by the architecture"}, {"sequential", "sequential"}}}
	refused := form
	refused.Form = Form{Values: map[string]string{"path": "/notebook/1/project_model/llama", "cores": "101"}}.Refuse(models.InvalidFields(
		models.Field{Name: "cores", Reason: models.Say("must be from 1 to %d", 100)},
		models.Field{Name: "environment_id", Reason: models.Say("has neither PyTorch nor NumPy, with which the parts compute")}))
	list := []sample{{"deployments-none", "/deployments", &li, DeploymentsPage(DeploymentsView{State: "live"})},
		{"deploy", "/deployments/new", &li, DeployPage(form)}, {"deploy-refused", "/deployments/new", &li, DeployPage(refused)},
		{"deploy-none", "/deployments/new", &li, DeployPage(DeployForm{})}}
	var rows []DeploymentRow
	for _, state := range []models.DeploymentState{models.DeploymentDeploying, models.DeploymentServing, models.DeploymentFailed} {
		d := sampleDeployment(state)
		rows = append(rows, d.DeploymentRow)
		list = append(list, sample{"deployment-" + string(state), "/deployments/3", &li, DeploymentPage(d)})
	}
	images := sampleDeployment(models.DeploymentServing)
	images.Task, images.Metrics = models.TaskImageClassification, sampleDeploymentMetrics(models.TaskImageClassification)
	idle := sampleDeployment(models.DeploymentIdle)
	idle.Demand, idle.Task, idle.Metrics = models.Demand{}, models.TaskTextEmbedding, models.DeploymentMetrics{Deployment: models.Deployment{Task: models.TaskTextEmbedding}, Span: "week"}
	list = append(list, sample{"deployment-images", "/deployments/3", &li, DeploymentPage(images)}, sample{"deployment-idle", "/deployments/3", &li, DeploymentPage(idle)})
	return append(list, sample{"deployments", "/deployments", &li, DeploymentsPage(DeploymentsView{Rows: rows, State: "all", Next: "/deployments?cursor=2"})})
}
