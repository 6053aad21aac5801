package web

import (
	"time"

	"weir/models"
)

func sampleRun(state models.RunState) RunDetail {
	r := RunDetail{RunRow: RunRow{CanRead: true, CanStop: state != models.RunEnded && state != models.RunStopping, CanDelete: state == models.RunEnded,
		RunView: models.RunView{ProjectName: "vision", UserName: "Li Wei", EnvironmentName: "PyTorch 2.9 · Python 3.12", Run: models.Run{ID: 4, ProjectID: 1, Name: "python",
			Command: []string{"python", "train.py", "--note", "two words"}, Directory: "/home/jovyan/vision", State: state, Demand: models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 40 << 10, CPUMilli: 4000, MemoryMiB: 20 << 10},
			TimeLimitSeconds: 1800, RequestedAt: ago(90 * time.Minute)}}}}
	if state == models.RunQueued {
		r.Events = []models.RunEvent{{At: ago(90 * time.Minute), State: state, Message: models.Say("Queued: %s.", models.Say("GPU 0 has 30 of 50 cores free; 2 requests were there before."))}}
		r.Position, r.Starts, r.Reason = 2, Start{Text: models.Say("in about %d minutes", int64(14)), At: now.Add(14 * time.Minute)}, models.Say("GPU 0 has 30 of 50 cores free; 2 requests were there before.")
		return r
	}
	r.StartedAt = ptr(ago(20 * time.Minute))
	r.Events = []models.RunEvent{{At: ago(20 * time.Minute), State: models.RunRunning, Message: models.Say("The command was started.")}}
	if state != models.RunEnded {
		r.Reservation = &models.ReservationGrant{ReservationID: 3, EndsAt: now.Add(2 * time.Hour)}
		r.Devices, r.Simulated, r.Output, r.Graph = []Device{myDevice()}, true, "epoch 1 of 10\n", sampleProgress()
		return r
	}
	r.EndedAt, r.ExitCode, r.Output, r.Cut, r.Reason = ptr(ago(5*time.Minute)), ptr(int64(143)), "epoch 9 of 10\n", true, models.Say("The time limit of %s was reached.", "30m0s")
	return r
}

func runSamples() []sample {
	var rows []RunRow
	list := []sample{{"runs-none", "/runs", &li, RunsPage(RunsView{State: "live"})}, {"run-delete", "/runs/4/delete", &li, ConfirmPage(ConfirmDeleteRun(sampleRun(models.RunEnded).RunRow))}}
	for _, state := range append([]models.RunState{models.RunEnded}, models.LiveRuns...) {
		r := sampleRun(state)
		rows = append(rows, r.RunRow)
		list = append(list, sample{"run-" + string(state), "/runs/4", &li, RunPage(r)})
	}
	idle := sampleRun(models.RunRunning)
	idle.RemindedAt, idle.IdleEndsAt = ptr(ago(time.Minute)), ptr(now.Add(4*time.Minute))
	list = append(list, sample{"run-idle", "/runs/4", &li, RunPage(idle)})
	attached := sampleRun(models.RunRunning)
	attached.Attached, attached.LeaseSeconds = true, 600
	list = append(list, sample{"run-attached", "/runs/4", &li, RunPage(attached)})
	foreign := sampleRun(models.RunRunning)
	foreign.CanRead, foreign.CanStop, foreign.Output = false, false, ""
	form := RunForm{LaunchView: launchWith(sampleLaunch().Decision), Environment: "PyTorch 2.9", Reservations: []Option{{"3", "№ 3 · 100 GPU cores"}}, Workspaces: []Option{{"5", "segmentation · vision"}}}
	refused := RunForm{LaunchView: LaunchView{Form: Form{Values: map[string]string{"command": "python 'x"}}.Refuse(models.Invalid("command", "has a quote that is not closed")),
		Projects: []Option{{"1", "vision"}}, Decision: Decision{Outcome: models.OutcomeDelayed, RequestedCores: 50, Wait: &Wait{Before: 2, Starts: Start{Text: models.Say("unknown (not enough usage history)")}}}}}
	list = append(list, sample{"run-new", "/runs/new", &li, RunFormPage(form)}, sample{"run-refused", "/runs/new", &li, RunFormPage(refused)},
		sample{"run-none", "/runs/new", &li, RunFormPage(RunForm{})})
	return append(list, sample{"run-foreign", "/runs/4", &li, RunPage(foreign)},
		sample{"runs", "/runs", &li, RunsPage(RunsView{Rows: rows, State: "all", Project: 1, Next: "/runs?cursor=2"})})
}

// sampleProgress is a graph with a branch in each state.
func sampleProgress() models.GraphProgress {
	at, ok, bad := func(seconds int) *time.Time { return ptr(ago(20*time.Minute - time.Duration(seconds)*time.Second)) }, 0, 7
	ended := models.OperatorProgress{Operator: "read", Attempts: 1, CPUs: []int{1}, StartedAt: at(0), EndedAt: at(52), Code: &ok, Seconds: 51.5}
	failed := models.OperatorProgress{Operator: "decode", Attempts: 2, CPUs: []int{4}, StartedAt: at(2), EndedAt: at(40), Code: &bad, Seconds: 38}
	return models.GraphProgress{Name: "training", StartedAt: *at(0), EndedAt: at(70), Code: &bad, Failed: "images/decode", Attempts: 2, Revisions: 1, PlannedAt: *at(0), Mode: models.GraphReduced,
		Utilization: 60, SecondThreshold: 50, FirstThreshold: 70, Branches: []models.BranchProgress{
			{Branch: "text", Stage: 1, CPUs: []int{1}, PlannedUntil: 50, StartedAt: at(0), EndedAt: at(52), Operators: []models.OperatorProgress{ended}},
			{Branch: "images", Stage: 1, CPUs: []int{4}, PlannedUntil: 60, StartedAt: at(2), EndedAt: at(40), Failed: true, Operators: []models.OperatorProgress{failed}},
			{Branch: "labels", Stage: 1, CPUs: []int{2}, PlannedUntil: 60, StartedAt: at(3), Operators: []models.OperatorProgress{{Operator: "clean", Attempts: 1, StartedAt: at(3)}}},
			{Branch: "train", Stage: 2, CPUs: []int{1, 4}, PlannedFrom: 60, PlannedUntil: 90, Operators: []models.OperatorProgress{{Operator: "fit"}}}}}
}
