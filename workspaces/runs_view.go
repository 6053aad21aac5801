package workspaces

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/runtime"
)

// RunSummary is a run, with what the actor may do with it now.
type RunSummary struct {
	models.RunView
	Events     []models.RunEvent // of one run, not in lists
	CanStop    bool
	CanRead    bool // its command and its output
	CanDelete  bool
	IdleEndsAt *time.Time // when it is ended unless it works before; nil: never

	Reservation *models.ReservationGrant // that ends it; nil: none, and in lists
	Address     string                   // HOST:PORT for programs in its workspace; empty elsewhere, and without a network in common
}

func (s *Service) runSummary(actor policies.Actor, r models.RunView) RunSummary {
	own := actor.User.ID != 0 && actor.User.ID == r.UserID
	may := s.access.MayOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceStop)
	v := RunSummary{RunView: r, CanStop: may && r.State != models.RunEnded && r.State != models.RunStopping,
		CanDelete: may && r.State == models.RunEnded,
		CanRead:   own && s.access.MayOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceOpen)}
	v.IdleEndsAt = idleEnd(r.Run, s.store.Now())
	if !own { // arguments and variables often contain keys
		v.Command, v.Directory = []string{r.Name}, ""
		v.Target = slices.DeleteFunc(slices.Clone(r.Target), func(p models.Parameter) bool { return strings.HasPrefix(p.Name, "env.") })
	}
	return v
}

// ViewRun shows a run of a project that the actor may see.
func (s *Service) ViewRun(ctx context.Context, actor policies.Actor, id int64) (RunSummary, error) {
	r, err := s.authorizeRun(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return RunSummary{}, err
	}
	v, q := s.runSummary(actor, r), s.store.Read(ctx)
	if v.Events, err = q.RunEvents(id); err != nil {
		return v, err
	}
	if v.Reason, err = s.whyQueued(q, actor, r); err != nil {
		return v, err
	}
	if v.Address, err = s.reach(ctx, actor, r); err != nil {
		return v, err
	}
	grant, err := q.GrantInUse(r.HolderID)
	if err == nil {
		v.Reservation = &grant
	}
	return v, models.IgnoreNotFound(err)
}

// reach is the address of a running run for programs in its workspace.
func (s *Service) reach(ctx context.Context, actor policies.Actor, r models.RunView) (string, error) {
	runs, ok := s.Runs.(runtime.Reachable)
	if !ok || actor.Inside.Workspace == 0 || r.State != models.RunRunning {
		return "", nil
	}
	return runs.Reach(ctx, r.RuntimeState)
}

// whyQueued is why a run waits, for its user with the reservation of theirs in which it could start now.
func (s *Service) whyQueued(q *store.Queries, actor policies.Actor, r models.RunView) (models.Text, error) {
	if r.State != models.RunQueued || r.UserID != actor.User.ID {
		return r.Reason, nil
	}
	id, err := s.fittingReservation(q, r.ProjectID, r.UserID, r.Demand)
	if err != nil || id == 0 {
		return r.Reason, err
	}
	if limit, err := blocked(q, r.Claim()); err != nil || !limit.Empty() { // which holds in a reservation, too
		return r.Reason, err
	}
	return withReservation(r.Reason, id), nil
}

// EndsAt is when the time limit or the reservation ends the run; nil: never, or it has not started.
func (r RunSummary) EndsAt() *time.Time {
	end := r.RunView.EndsAt()
	if r.Reservation != nil && (end == nil || r.Reservation.EndsAt.Before(*end)) {
		end = &r.Reservation.EndsAt
	}
	return end
}

// ListRuns shows the actor's own runs, and those of others in projects whose workspaces
// the actor may see, newest first.
func (s *Service) ListRuns(ctx context.Context, actor policies.Actor, f store.RunFilter, page store.Page) ([]RunSummary, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	}
	f.WorkspaceID = cmp.Or(actor.Inside.Workspace, f.WorkspaceID)
	f.Visible = s.access.Visible(actor, policies.WorkspaceRead)
	list, err := s.store.Read(ctx).Runs(actor.Scope(), f, page)
	views := make([]RunSummary, len(list))
	for i, r := range list {
		views[i] = s.runSummary(actor, r)
	}
	return views, err
}

// RunSignals are the signals that can be sent to runs.
var RunSignals = []string{"INT", "TERM", "HUP", "QUIT", "USR1", "USR2"}

// SignalRun sends a signal, one of [RunSignals], to the program of a run.
func (s *Service) SignalRun(ctx context.Context, actor policies.Actor, id int64, signal string) error {
	r, err := s.authorizeRun(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return err
	}
	if !slices.Contains(RunSignals, signal) {
		return models.Invalid("signal", "must be one of %s", strings.Join(RunSignals, ", "))
	}
	notNow := models.Conflict("The program of this run does not run now. The run is %s.", r.State.Words())
	if s.Runs == nil || r.RuntimeState == nil || r.State == models.RunEnded {
		return notNow
	}
	err = s.access.WriteOwned(ctx, s.store, actor, r.UserID, r.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		return errors.Join(q.AddRunEvent(r.Run, models.Say("Signal %s sent by %s.", signal, cmp.Or(actor.User.Name, actor.Label()))),
			actor.Audit(q, policies.Change{Action: "signal", Object: "run", ID: r.ID, Project: r.ProjectID,
				After: map[string]any{"signal": signal}}))
	})
	if err != nil {
		return err
	}
	delivered, err := s.Runs.Signal(ctx, r.RuntimeState, syscall.Signal(unix.SignalNum("SIG"+signal)))
	if err == nil && !delivered {
		return notNow
	}
	return err
}

// RunLog is a piece of the output of a run.
type RunLog struct {
	Data   []byte
	Offset int64 // of the first byte
	Ended  bool  // the run has ended, and this is the rest
}

const (
	logPiece  = 256 << 10
	logPeriod = 100 * time.Millisecond // between looks for more output
)

// ReadRunLog returns output from an offset on. If there is none yet, it waits for some, but
// not longer than wait and not after the run has ended.
func (s *Service) ReadRunLog(ctx context.Context, actor policies.Actor, id, offset int64, wait time.Duration) (l RunLog, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		if l, err = s.readRunLog(context.WithoutCancel(ctx), actor, id, offset); err != nil || len(l.Data) > 0 || l.Ended {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, nil
		case <-time.After(logPeriod):
		}
	}
}

// RunOutputEnd returns the end of the output of a run, at most limit bytes.
func (s *Service) RunOutputEnd(ctx context.Context, actor policies.Actor, id, limit int64) (RunLog, error) {
	end, err := s.readRunLog(ctx, actor, id, math.MaxInt64)
	if err != nil || end.Offset == math.MaxInt64 {
		return RunLog{}, err
	}
	return s.readRunLog(ctx, actor, id, max(end.Offset-limit, 0))
}

// readableRun is a run whose output the actor may read.
func (s *Service) readableRun(ctx context.Context, actor policies.Actor, id int64) (models.RunView, error) {
	r, err := s.authorizeRun(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return r, err
	}
	if r.UserID != actor.User.ID {
		return r, models.Forbidden("Only the user who started a run can read its output.")
	}
	return r, s.access.CheckOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceOpen)
}

func (s *Service) readRunLog(ctx context.Context, actor policies.Actor, id, offset int64) (l RunLog, err error) {
	r, err := s.readableRun(ctx, actor, id)
	if err != nil {
		return l, err
	}
	l = RunLog{Offset: offset, Ended: r.State == models.RunEnded}
	if r.RuntimeState == nil || s.Runs == nil {
		return l, nil
	}
	l.Data, l.Offset, err = s.Runs.Log(r.RuntimeState, offset, logPiece)
	if errors.Is(err, fs.ErrNotExist) { // it was removed
		return RunLog{Offset: offset, Ended: true}, nil
	}
	l.Ended = l.Ended && len(l.Data) < logPiece
	return l, err
}
