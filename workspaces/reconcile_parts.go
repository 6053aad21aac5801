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
	"weir/workspaces/deployments/serving"
	"weir/workspaces/runtime"
)

// restartPauses are those before a part that has ended is started again, while it is not ready in between: what
// has ended it may pass, or be a GPU whose error the driver has yet to report. After the last one, it has failed.
var restartPauses = []time.Duration{time.Second, 10 * time.Second, time.Minute}

const (
	partAskTimeout   = 2 * time.Second // of a question to a part, which may compute at the same time
	partReadyTimeout = time.Minute     // without an answer, when it is loaded
)

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

func (r *Reconciler) dialPart(p models.DeploymentPart) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return r.config.Parts.Dial(ctx, p.RuntimeState)
	}
}
