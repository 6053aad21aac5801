package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"

	"weir/workspaces/deployments/serving"
	"weir/workspaces/idleness"
	"weir/workspaces/runtime"
)

const (
	partLoadTimeout = 10 * time.Minute // without progress, from the start of the process to ready
	maxMemoryStep   = 50               // part of the most memory so far by which that must grow to be recorded
)

// time is what the part has said last; nil if it has not, or its program is of a version that does not.
func (w *partWatch) time(now time.Time) *countedTime {
	if !w.heard || w.said.Busy == nil {
		return nil
	}
	return &countedTime{now, w.said.Active, *w.said.Busy}
}

// watchPart records how far a part is, and stops its process if it has hung: then it is
// started again as after any other end.
func (r *Reconciler) watchPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart) error {
	w, now := r.watches.of(*p), r.now()
	if !w.stopped.Empty() { // Stop has to be repeated
		return r.config.Parts.Stop(ctx, p.RuntimeState)
	}
	if w.at.IsZero() {
		w.at = now
	}
	asking, cancel := context.WithTimeout(ctx, partAskTimeout)
	defer cancel()
	said, err := serving.Ask(asking, r.dialPart(*p), d.Key())
	if err == nil {
		w.said = said
	}
	if err == nil && said.Version != serving.Version { // and serves nothing that this server sends
		return r.stopPart(ctx, d, p, models.Say("its program is of another version of Weir"))
	}
	if err == nil && (said.Ready || said.Progress > w.progress || !w.heard) {
		w.at, w.progress, w.heard = now, said.Progress, true
	}
	if w.counted == nil {
		w.counted = w.time(r.config.Store.Now())
	}
	limit := partLoadTimeout
	if p.State == models.PartReady {
		limit = partReadyTimeout
	}
	if now.Sub(w.at) > limit {
		return r.stopPart(ctx, d, p, w.hung(p.State, limit))
	}
	if err == nil && p.State == models.PartReady && said.Memory > p.MaxMemory+p.MaxMemory/maxMemoryStep {
		p.MaxMemory = said.Memory
		return r.transitionPart(ctx, d, p, models.PartReady, models.Text{})
	}
	if err != nil || p.State == models.PartReady || said.Progress == p.Progress && !said.Ready {
		return nil
	}
	p.Progress, p.Library, p.DeviceType = said.Progress, said.Library, said.Device
	message := models.Text{}
	if said.Ready {
		p.State, p.Progress, p.Failures = models.PartReady, 100, 0
		message = models.Say("Part %d is loaded.", p.Number+1)
	}
	return r.transitionPart(ctx, d, p, models.PartLoading, message)
}

// countParts records how much of the time with requests each part has computed since it was counted last, by this server:
// what a part has done before is counted by the one that led then. Only the first part knows when there are requests.
func (r *Reconciler) countParts(ctx context.Context, d models.Deployment, parts []models.DeploymentPart) error {
	now, first := r.config.Store.Now(), r.watches.of(parts[0])
	said := first.time(now)
	if first.counted == nil || said == nil || said.active <= first.counted.active {
		return nil
	}
	taken := map[requestCount]amount{}
	for _, p := range parts {
		w := r.watches.of(p)
		part := w.time(now)
		if part == nil || w.counted == nil {
			w.counted = part
			continue
		}
		passed := now.Sub(w.counted.at).Milliseconds() // a process says what it wants
		of := requestCount{d.First(), now.UTC().Truncate(time.Minute), models.MeasurePartActive, models.PartBucket(d.ID, p.Number)}
		taken[of] = amount{count: min(said.active-first.counted.active, passed)}
		of.measure = models.MeasurePartBusy
		taken[of] = amount{count: min(max(part.busy-w.counted.busy, 0), passed)}
	}
	err := r.config.Store.InTx(ctx, func(q *store.Queries) error { return q.AddDeploymentCounts(storedCounts(taken)) })
	for _, p := range parts {
		if w := r.watches.of(p); err == nil {
			w.counted = w.time(now)
		}
	}
	return err
}

// observeParts records how much the parts of a deployment use of simulated GPUs, on average, and how long they compute.
func (r *Reconciler) observeParts(ctx context.Context, d models.Deployment, parts []models.DeploymentPart) error {
	now, first := &idleness.Observation{At: r.config.Store.Now()}, r.watches.of(parts[0])
	before := first.looked
	if before != nil && now.At.Sub(before.At).Abs() < observePeriod {
		return nil
	}
	for _, p := range parts {
		now.CPU += r.watches.of(p).cpu / time.Duration(len(parts))
	}
	first.looked = now
	return errors.Join(r.saveUtilisation(ctx, d.Claim(), before, now), r.countParts(ctx, d, parts))
}

// awaitPart records what the start of a part's process waits for, such as its image, and stops it
// if that takes too long.
func (r *Reconciler) awaitPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, status runtime.RunStatus) error {
	w, now := r.watches.of(*p), r.now()
	w.at = now // the time to listen begins with the process
	switch {
	case !w.stopped.Empty():
		return r.config.Parts.Stop(ctx, p.RuntimeState)
	case r.overdue(d.ID):
		return r.stopPart(ctx, d, p, models.Say("it has not been started, and its GPU is lost"))
	case w.start.stalled(status.Stage, now):
		why := models.Say("its process has not started within %s", status.Stage.Timeout().String())
		if !status.Message.Empty() {
			why = status.Message
		}
		return r.stopPart(ctx, d, p, why)
	case w.start.messageDue(status.Message, now):
		w.start.messageWritten()
		return r.config.Store.InTx(ctx, func(q *store.Queries) error {
			return q.AddDeploymentEvent(*d, models.Say("Part %d waits: %s.", p.Number+1, status.Message))
		})
	}
	return nil
}

// stopPart stops a process that does not do what it should. Until it has ended, which can be long if
// its machine does not respond, nothing is sent to it.
func (r *Reconciler) stopPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, why models.Text) error {
	from := p.State
	p.State, p.Progress = models.PartLoading, 0
	if err := r.transitionPart(ctx, d, p, from, models.Say("Part %d is stopped: %s.", p.Number+1, why)); err != nil {
		return err
	}
	r.watches.of(*p).stopped = why
	return r.config.Parts.Stop(ctx, p.RuntimeState)
}

// hung says in which stage a part has hung.
func (w *partWatch) hung(state models.PartState, limit time.Duration) models.Text {
	switch {
	case state == models.PartReady:
		return models.Say("it has not responded for %s", limit.String())
	case w.heard:
		return models.Say("loading its tensors has stayed at %d%% for %s", w.progress, limit.String())
	default:
		return models.Say("its process has not begun to listen within %s", limit.String())
	}
}
