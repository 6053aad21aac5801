package workspaces

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"

	"weir/workspaces/deployments/serving"
	"weir/workspaces/runtime"
)

// restartPauses are those before a part that has ended is started again, while it is not ready in between: what
// has ended it may pass, or be a GPU whose error the driver has yet to report. After the last one, it has failed.
var restartPauses = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// StepDeployments requests a step of all deployments. It never blocks.
func (r *Reconciler) StepDeployments() {
	select {
	case r.partSteps <- struct{}{}:
	default:
	}
}

// watchDeployments keeps the parts of all deployments running, until ctx ends. They go on
// after it.
func (r *Reconciler) watchDeployments(ctx context.Context) {
	defer r.writers.Wait()
	defer r.followers.Wait()
	r.watches, r.requests = partWatches{}, map[int64]requestsSeen{}
	r.modelFiles, r.lostGPUs = map[int64]*modelWatch{}, map[int64]*lostGPU{}
	r.writing = map[int64]*partsWriting{} // without what an earlier term as the leader has begun
	for r.config.Parts != nil && ctx.Err() == nil {
		r.logError(ctx, errors.Join(r.stepDeployments(ctx), r.sweepParts(ctx)))
		select {
		case <-ctx.Done():
		case <-r.partSteps:
		case <-time.After(runPeriod):
		}
	}
}

func (r *Reconciler) stepDeployments(ctx context.Context) error {
	live, err := r.config.Store.Read(ctx).DeploymentsIn(models.LiveDeployments...)
	if err != nil {
		return err
	}
	r.followModels(ctx, live)
	return errors.Join(r.moveDeployments(ctx, live),
		forEach(live, func(d models.Deployment) error { return r.stepDeployment(ctx, &d) }))
}

func (r *Reconciler) stepDeployment(ctx context.Context, d *models.Deployment) error {
	parts, err := r.config.Store.Read(ctx).DeploymentParts(d.ID)
	if err != nil || len(parts) == 0 {
		return err
	}
	switch d.State {
	case models.DeploymentStopping:
		return r.stopParts(ctx, d, parts)
	case models.DeploymentIdle:
		return r.releaseIdle(ctx, d, parts)
	}
	if parts[0].File == "" {
		return r.writeParts(ctx, d, parts)
	}
	ready := true
	for i := range parts {
		if err := r.stepPart(ctx, d, &parts[i]); err != nil || d.State == models.DeploymentStopping {
			return err
		}
		ready = ready && parts[i].State == models.PartReady
	}
	if err := r.observeParts(ctx, *d, parts); err != nil {
		return err
	}
	if d.State == models.DeploymentServing && r.becomesIdle(*d, parts) {
		return r.idleDeployment(ctx, *d,
			models.Say("There were no requests for %d minutes. Its GPUs are released until the next one.", d.Request.IdleMinutes))
	}
	if d.State != models.DeploymentDeploying || !ready {
		return nil
	}
	d.State = models.DeploymentServing
	if d.StartedAt == nil {
		d.StartedAt = new(r.config.Store.Now())
	}
	return r.transitionDeployment(ctx, d, models.DeploymentDeploying, models.Say("All parts are loaded. Requests are served."),
		func(q *store.Queries) error { return takePlace(q, *d) })
}

// recordParts records what was written.
func (r *Reconciler) recordParts(ctx context.Context, d models.Deployment, parts []models.DeploymentPart,
	files []models.WrittenPart) error {
	if len(files) != len(parts) {
		return models.Conflict("The model has changed since it was planned.")
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		for i, p := range parts {
			p.File, p.Size = files[i].File, files[i].Size
			if err := q.TransitionPart(d, &p, models.PartWaiting, models.Text{}); err != nil {
				return err
			}
		}
		return q.AddDeploymentEvent(d, models.Say("%d parts are on the disk.", int64(len(parts))))
	})
}

// stepPart starts a part, observes how it loads, and starts it again if it has ended.
func (r *Reconciler) stepPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if p.State == models.PartWaiting && (r.keepsWaiting(d.ID) || r.now().Before(r.watches.of(*p).pausesUntil)) {
		return nil
	}
	if p.State == models.PartWaiting {
		return r.startPart(ctx, d, p)
	}
	status, err := r.config.Parts.Poll(ctx, p.RuntimeState)
	if err != nil {
		return err
	}
	if status.Ended {
		return r.partEnded(ctx, d, p, status)
	}
	r.watches.of(*p).cpu = status.CPU
	if status.Stage != "" {
		return r.awaitPart(ctx, d, p, status)
	}
	return r.watchPart(ctx, d, p)
}

func (r *Reconciler) dialPart(p models.DeploymentPart) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return r.config.Parts.Dial(ctx, p.RuntimeState)
	}
}

// startPart starts the process of a part on its GPU. It is repeated after a crash; the runtime
// starts it only once.
func (r *Reconciler) startPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart) error {
	spec, _, err := r.specOf(ctx, d.Claim(), d.EnvironmentID, d.Target, map[string]string{})
	if err != nil {
		return err
	}
	n := int64(len(d.Plan.Parts))
	if int64(len(spec.GPUs)) != n {
		return models.Conflict("The deployment has %d shares and %d parts.", int64(len(spec.GPUs)), n)
	}
	slices.SortStableFunc(spec.GPUs, func(a, b runtime.GPU) int { return cmp.Compare(a.Index, b.Index) }) // as pages list them
	spec.Workspace, spec.Generation = p.ID, p.Restarts+1                                                  // what has ended may not be gone yet
	spec.GPUs, spec.CPU, spec.Memory = spec.GPUs[p.Number:p.Number+1], spec.CPU/n, spec.Memory/n
	spec.Mounts = []models.Mount{{Source: r.config.Served.Directory(*d, p.Number), Target: serving.Target, ReadOnly: true}}
	spec.Env[serving.KeyName], spec.Env[serving.AddressName] = d.Secret, r.config.Parts.Address()
	if err := r.config.Served.WriteWorker(*d, p.Number); err != nil {
		r.logError(ctx, err)
		return r.countFailure(ctx, d, p, models.Say("its files cannot be written"))
	}
	models.Failpoint("part.intent")
	state, err := r.config.Parts.Start(ctx, p.ID, spec, serving.Command)
	if err != nil {
		return r.partNotStarted(ctx, d, p, err)
	}
	models.Failpoint("part.launched")
	p.State, p.RuntimeState, p.Progress, p.Library, p.DeviceType, p.MaxMemory = models.PartLoading, state, 0, "", "", 0
	return r.transitionPart(ctx, d, p, models.PartWaiting, models.Say("Part %d is being loaded.", p.Number+1))
}

// partNotStarted has a part start later if what prevents that may pass, and counts a failure if not.
func (r *Reconciler) partNotStarted(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, cause error) error {
	if ctx.Err() != nil || models.KindOf(cause) == models.KindUnavailable &&
		!r.watches.of(*p).start.stalled(runtime.StageLaunching, r.now()) {
		return cause
	}
	why := models.Say("its process could not be started")
	if e, known := errors.AsType[*models.Error](cause); known && e.Kind != models.KindInternal {
		why = e.Message
	}
	r.logError(ctx, cause)
	return r.countFailure(ctx, d, p, why)
}

// killedCode is the exit code with which a sandbox ends whose program was killed by SIGKILL.
const killedCode = 128 + 9

// partEnded removes what an ended part has left, so that it can be started again.
func (r *Reconciler) partEnded(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, status runtime.RunStatus) error {
	why := models.Say("its process has ended with exit code %d", int64(status.ExitCode))
	stopped := r.watches.of(*p).stopped
	delete(r.watches, p.ID)
	switch {
	case !stopped.Empty():
		why = stopped
	case status.OutOfMemory:
		why = models.Say("it has reached its memory limit")
	case !status.Message.Empty():
		why = status.Message
	case status.ExitCode < 0 || status.ExitCode == killedCode:
		why = models.Say("its process was killed")
	}
	if line := r.lastLine(*p); line != "" && stopped.Empty() && status.ExitCode > 0 && status.ExitCode != killedCode {
		why = models.Say("%s: %s", why, line)
	}
	if err := r.config.Parts.Remove(ctx, p.RuntimeState); err != nil {
		return err
	}
	return r.countFailure(ctx, d, p, why)
}

// countFailure has a part start again, or ends its deployment if it has failed too often.
func (r *Reconciler) countFailure(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, why models.Text) error {
	from := p.State
	p.State, p.RuntimeState, p.Progress = models.PartWaiting, nil, 0
	p.Restarts++
	if p.Failures++; p.Failures > int64(len(restartPauses)) {
		return r.failDeployment(ctx, d, models.Say("The deployment failed: part %d: %s", p.Number+1, why))
	}
	r.watches.of(*p).pausesUntil = r.now().Add(restartPauses[p.Failures-1])
	return r.transitionPart(ctx, d, p, from, models.Say("Part %d is started again: %s.", p.Number+1, why))
}

// lastLine is the last line that a part has printed.
func (r *Reconciler) lastLine(p models.DeploymentPart) string {
	const most = 2000
	text, at, err := r.config.Parts.Log(p.RuntimeState, 0, 0)
	if err == nil {
		text, _, err = r.config.Parts.Log(p.RuntimeState, at, most)
	}
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")), "\n")
	return lines[len(lines)-1]
}

// stopParts ends all parts, and then the deployment.
func (r *Reconciler) stopParts(ctx context.Context, d *models.Deployment, parts []models.DeploymentPart) error {
	if w := r.writing[d.ID]; w.goesOn() {
		w.cancel()
		return nil // what is being written would be left
	}
	if d.DrainsUntil != nil && r.config.Store.Now().Before(*d.DrainsUntil) && r.computes(ctx, *d, parts) {
		return nil
	}
	delete(r.writing, d.ID)
	delete(r.requests, d.ID)
	if gone, err := r.endProcesses(ctx, parts); err != nil || !gone {
		return err
	}
	if d.Updating { // and keeps its shares and its files
		return r.config.Store.InTx(ctx, func(q *store.Queries) error {
			now, err := q.LockDeployment(d.ID)
			if err != nil || !now.Updating { // it was deployed again meanwhile
				return err
			}
			return endParts(q, now, parts)
		})
	}
	if err := r.config.Served.Remove(*d); err != nil {
		return err
	}
	version := d.Version
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		d.Version, d.State = version, models.DeploymentStopping // the transaction may be retried
		return endDeployment(q, r.config.Pool, d, parts)
	})
}

// endProcesses ends the processes of parts, and reports whether none is left.
func (r *Reconciler) endProcesses(ctx context.Context, parts []models.DeploymentPart) (gone bool, err error) {
	instances, err := r.config.Parts.List(ctx)
	if err != nil {
		return false, err
	}
	gone = true
	for _, p := range parts {
		r.watches.of(p).ending = true
		for _, i := range instances { // also what was started although its state was not saved
			if i.Workspace != p.ID {
				continue
			}
			gone = false
			if i.Ended {
				err = errors.Join(err, r.config.Parts.Remove(ctx, i.State))
			} else {
				err = errors.Join(err, r.config.Parts.Stop(ctx, i.State))
			}
		}
	}
	for _, p := range parts {
		if gone {
			delete(r.watches, p.ID)
		}
	}
	return gone, err
}

// endDeployment ends d and its parts, and releases all its shares.
func endDeployment(q *store.Queries, pool Pool, d *models.Deployment, parts []models.DeploymentPart) error {
	from := d.State
	d.State, d.Updating, d.EndedAt = models.DeploymentStopped, false, new(q.Now())
	if d.Failed {
		d.State = models.DeploymentFailed
	}
	if err := q.TransitionDeployment(d, from, models.Say("Ended. Its shares were released.")); err != nil {
		return err
	}
	if err := endParts(q, *d, parts); err != nil {
		return err
	}
	return pool.Release(q, d.HolderID)
}

func endParts(q *store.Queries, d models.Deployment, parts []models.DeploymentPart) error {
	for _, p := range parts {
		if p.State == models.PartEnded {
			continue
		}
		from := p.State
		p.State, p.RuntimeState, p.Progress = models.PartEnded, nil, 0
		if err := q.TransitionPart(d, &p, from, models.Text{}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) failDeployment(ctx context.Context, d *models.Deployment, why models.Text) error {
	d.Failed = true
	version, from := d.Version, d.State
	d.Updating = d.FallsBack()
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		d.Version, d.State = version, from // the transaction may be retried
		return stopDeployment(q, policies.System("reconciler"), d, why)
	})
}

// transitionDeployment writes d, whose state was from, and then calls the functions in the
// same transaction.
func (r *Reconciler) transitionDeployment(ctx context.Context, d *models.Deployment, from models.DeploymentState, message models.Text,
	then ...func(*store.Queries) error) error {
	return r.inTx(ctx, &d.Version, func(q *store.Queries) error { return q.TransitionDeployment(d, from, message) }, then)
}

func (r *Reconciler) transitionPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, from models.PartState,
	message models.Text) error {
	return r.inTx(ctx, &p.Version, func(q *store.Queries) error { return q.TransitionPart(*d, p, from, message) }, nil)
}
