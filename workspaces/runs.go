package workspaces

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/runtime"
)

// RunInput describes a run.
type RunInput struct {
	ProjectID        int64                   `json:"project_id,omitempty" minimum:"0" doc:"project ID; absent: that of the workspace"`
	WorkspaceID      int64                   `json:"workspace_id,omitempty" minimum:"0" doc:"your workspace whose environment the run has"`
	EnvironmentID    int64                   `json:"environment_id,omitempty" minimum:"0" doc:"default: of the workspace, or the best match"`
	Command          []string                `json:"command" minItems:"1" maxItems:"1000" doc:"program and its arguments"`
	Directory        string                  `json:"directory,omitempty" maxLength:"4096" doc:"absolute path in the environment in which the command begins; absent: the home directory"`
	Name             string                  `json:"name,omitempty" maxLength:"100" doc:"what it is called in lists; absent: as the program"`
	Request          models.LaunchParameters `json:"request,omitempty"`
	ReservationID    int64                   `json:"reservation_id,omitempty" minimum:"0" doc:"your active reservation in which the command runs; its GPUs are the default"`
	TimeLimitSeconds int64                   `json:"time_limit_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"seconds; 0: no limit"`
	LeaseSeconds     int64                   `json:"lease_seconds,omitempty" minimum:"0" maximum:"3600" doc:"lease in seconds; 0: none"`
	Attached         bool                    `json:"attached,omitempty" doc:"a client waits for its end and renews its lease: it is not ended as idle, nor with its workspace"`
	WhenInsufficient string                  `json:"when_insufficient,omitempty" enum:"refuse,fewer,wait" doc:"default wait"`
}

const (
	maxTimeLimit    = 30 * 24 * 3600 // seconds
	maxCommandBytes = 100_000
	maxRunName      = 100 // characters
	maxDirectory    = 4096
	keptRuns        = 200 // of a member in a project that have ended; older ones are deleted
)

// Bounds of the lease of a run, in seconds.
const (
	minLease = 10
	maxLease = 3600
)

// Check validates and normalizes the input alone.
func (in *RunInput) Check() error {
	var p models.Problems
	size := 0
	for _, word := range in.Command {
		size += len(word) + 1
		if strings.Contains(word, "\x00") {
			p.Add("command", "must not contain NUL")
		}
	}
	switch {
	case len(in.Command) == 0 || in.Command[0] == "":
		p.Add("command", "must name a program")
	case size > maxCommandBytes:
		p.Add("command", "must be at most %d characters", maxCommandBytes)
	}
	in.Request.Check("", &p)
	in.Directory = checkDirectory(in.Directory, &p)
	in.Name = models.CheckText("name", in.Name, maxRunName, &p)
	if strings.Contains(in.Name, "\n") {
		p.Add("name", "must be a single line")
	}
	if in.TimeLimitSeconds < 0 || in.TimeLimitSeconds > maxTimeLimit {
		p.Add("time_limit_seconds", "must be from 0 to %d", maxTimeLimit)
	}
	if in.LeaseSeconds != 0 && (in.LeaseSeconds < minLease || in.LeaseSeconds > maxLease) {
		p.Add("lease_seconds", "must be 0, or from %d to %d", minLease, maxLease)
	}
	if in.Attached && in.LeaseSeconds == 0 {
		p.Add("lease_seconds", "is required, because the run is attached")
	}
	return p.Err()
}

// checkDirectory returns the clean path of a directory in the environment. Whether it exists there,
// only the run can see.
func checkDirectory(dir string, p *models.Problems) string {
	switch {
	case dir == "":
		return ""
	case !path.IsAbs(dir):
		p.Add("directory", "must be an absolute path in the environment, such as %s", runtime.NotebookHome+"/project")
	case len(dir) > maxDirectory:
		p.Add("directory", "must be at most %d characters", maxDirectory)
	case strings.Contains(dir, "\x00"):
		p.Add("directory", "must not contain NUL")
	case strings.Contains(dir, "\n"):
		p.Add("directory", "must be a single line")
	}
	return path.Clean(dir)
}

// ofWorkspace completes the input from the actor's workspace that it names.
func (in *RunInput) ofWorkspace(q *store.Queries, actor policies.Actor) error {
	if inside := actor.Inside.Workspace; inside != 0 {
		if in.WorkspaceID != 0 && in.WorkspaceID != inside {
			return models.Invalid("workspace_id", "is not the workspace from which you start the run")
		}
		in.WorkspaceID = inside
	}
	if in.WorkspaceID == 0 {
		return nil
	}
	w, err := q.Workspace(actor.Scope(), in.WorkspaceID)
	if err == nil && w.UserID != actor.User.ID || models.KindOf(err) == models.KindNotFound && err != nil {
		return models.Invalid("workspace_id", "is not one of your workspaces")
	}
	if err != nil {
		return err
	}
	if in.ProjectID != 0 && in.ProjectID != w.ProjectID {
		return models.Invalid("workspace_id", "is in another project")
	}
	if in.LeaseSeconds != 0 && !in.Attached && (w.State.Ended() || w.State == models.StateStopping) {
		return models.Invalid("workspace_id", "is %s; a run with a lease ends with its workspace", w.State.Words())
	}
	in.ProjectID, in.EnvironmentID = w.ProjectID, cmp.Or(in.EnvironmentID, w.EnvironmentID)
	env := map[string]string{}
	for _, p := range w.Target {
		if name, ok := strings.CutPrefix(p.Name, "env."); ok && p.Origin == OriginMember {
			env[name] = p.Value
		}
	}
	for name, value := range in.Request.Env {
		env[name] = value
	}
	if in.Request.Env = env; len(env) == 0 {
		in.Request.Env = nil
	}
	return nil
}

// CanStartRun reports whether the actor can start runs in a project.
func (s *Service) CanStartRun(actor policies.Actor, project int64) bool {
	return actor.CanLaunchIn(project)
}

// StartRun starts a run, or queues it. If the demand cannot be satisfied now and
// in.WhenInsufficient is refuse, the error is a *Insufficient.
func (s *Service) StartRun(ctx context.Context, actor policies.Actor, in RunInput) (r models.Run, err error) {
	if err := actor.CheckUser(); err != nil {
		return r, err
	}
	if err := in.ofWorkspace(s.store.Read(ctx), actor); err != nil {
		return r, err
	}
	if err := s.access.Check(actor, in.ProjectID, policies.WorkspaceLaunch); err != nil {
		return r, err
	}
	if err := cmp.Or(in.Check(), s.store.CheckSpace()); err != nil {
		return r, err
	}
	var p Plan
	var refused *Insufficient
	err = s.access.Write(ctx, s.store, actor, in.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		project, err := q.Project(actor.Scope(), in.ProjectID) // which Write has locked
		if err != nil {
			return err
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		planned, member, err := s.planRun(q, actor, project, in)
		if err != nil {
			return err
		}
		p = planned
		if p.Rejection != nil {
			return p.Rejection
		}
		if refused = p.Insufficient(); refused != nil {
			return refused
		}
		r = models.Run{ProjectID: p.Project.ID, MemberID: member, UserID: actor.User.ID, EnvironmentID: p.Environment.ID, Command: in.Command,
			Directory: in.Directory, WorkspaceID: optionalID(in.WorkspaceID), Name: cmp.Or(in.Name, programName(in.Command)),
			State: models.RunStarting, Demand: p.Target.Demand, Target: p.Target.Parameters,
			TimeLimitSeconds: in.TimeLimitSeconds, LeaseSeconds: in.LeaseSeconds, Attached: in.Attached,
			Limits: []models.Limit{}, FileAccess: []models.PathAccess{}, Version: 1, RequestedAt: q.Now()}
		if err := s.commitRun(q, actor, &r, p); err != nil || in.ReservationID == 0 {
			return err
		}
		return q.UseReservation(in.ReservationID, q.Now())
	})
	if refused != nil && in.ReservationID == 0 {
		err = errors.Join(refused, s.recordUnmet(ctx, actor, p))
	}
	return r, err
}

// optionalID is nil for 0.
func optionalID(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

// programName is what a run is called in lists.
func programName(command []string) string {
	name := []rune(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == 0xfffd {
			return ' '
		}
		return c
	}, filepath.Base(command[0])))
	return cmp.Or(strings.TrimSpace(string(name[:min(len(name), 100)])), "command")
}

// PreviewRun plans a run without any change; also one that has no command yet. Without a
// workspace and a project, it is in the first project in which the actor can launch now; if
// there is none, the plan is empty.
func (s *Service) PreviewRun(ctx context.Context, actor policies.Actor, in RunInput) (p Plan, err error) {
	if err := actor.CheckUser(); err != nil {
		return p, err
	}
	return p, s.store.Snapshot(ctx, func(q *store.Queries) error {
		if err := in.ofWorkspace(q, actor); err != nil {
			return err
		}
		if in.ProjectID != 0 {
			if err := s.access.Check(actor, in.ProjectID, policies.WorkspaceLaunch); err != nil {
				return err
			}
		}
		list, err := launchable(q, actor)
		if err != nil || in.ProjectID == 0 && len(list) == 0 {
			return err
		}
		project, err := projectOf(q, actor, LaunchInput{ProjectID: in.ProjectID}, list)
		if err != nil {
			return err
		}
		p, _, err = s.planRun(q, actor, project, in)
		p.Projects = list
		if p.Rejection == nil && len(in.Command) > 0 {
			p.Rejection = in.Check()
		}
		return err
	})
}

// planRun plans a run as a launch is planned.
func (s *Service) planRun(q *store.Queries, actor policies.Actor, project models.Project, in RunInput) (p Plan, member int64, err error) {
	launch := LaunchInput{ProjectID: project.ID, EnvironmentID: in.EnvironmentID, Request: in.Request, ReservationID: in.ReservationID,
		WhenInsufficient: cmp.Or(in.WhenInsufficient, WhenInsufficientWait)}
	from, err := s.readPlanInput(q, actor, project, launch, Model{}, nil)
	if err != nil {
		return p, 0, err
	}
	live, err := q.CountLiveRuns(from.member.ID)
	if err != nil {
		return p, 0, err
	}
	from.liveRuns, from.timeLimit = &live, time.Duration(in.TimeLimitSeconds)*time.Second
	p = plan(from)
	return p, from.member.ID, s.suggestReservation(q, from, &p)
}

// suggestReservation tells of a reservation of the member in which a run could start that would
// have to wait without it. It is not recorded with the run, because it does not stay true.
func (s *Service) suggestReservation(q *store.Queries, in planInput, p *Plan) error {
	if in.launch.ReservationID != 0 || p.Rejection != nil || p.Decision.Outcome == models.OutcomeGranted {
		return nil
	}
	id, err := s.fittingReservation(q, in.project.ID, in.member.UserID, p.Demand)
	if id != 0 {
		p.Decision.Explanation = withReservation(p.Decision.Explanation, id)
	}
	return err
}

// fittingReservation is an active reservation of a member with enough left for a demand of GPUs; 0: none.
func (s *Service) fittingReservation(q *store.Queries, project, user int64, d models.Demand) (int64, error) {
	if d.GPUs == 0 {
		return 0, nil
	}
	active := store.ReservationFilter{ProjectID: project, UserID: user, States: []models.ReservationState{models.ReservationActive}}
	list, err := q.Reservations(store.AllProjects, active, store.Page{})
	if err != nil {
		return 0, err
	}
	for _, r := range list {
		_, decide, err := s.pool.Reserved(q, r.Reservation, d)
		if err != nil || decide(d).Outcome == models.OutcomeGranted {
			return r.ID, err
		}
	}
	return 0, nil
}

// withReservation adds to why a run waits the reservation in which it need not.
func withReservation(why models.Text, id int64) models.Text {
	return models.Say("%s; your reservation %d has enough left for it: select it, or use --reservation %d", why, id, id)
}

// commitRun writes the planned run, and takes its shares or queues it.
func (s *Service) commitRun(q *store.Queries, actor policies.Actor, r *models.Run, p Plan) error {
	message := models.Say("Requested: %s. %s", describe(p.Demand), p.launchDecision.Explanation)
	queued := p.State == models.StateQueued
	if queued {
		r.State, r.Reason = models.RunQueued, p.launchDecision.Explanation
		message = models.Say("Queued: %s.", p.launchDecision.Explanation)
	}
	if err := q.CreateRun(r, message); err != nil {
		return err
	}
	if !queued {
		if err := s.pool.Take(q, r.Claim().Holder, p.launchDecision); err != nil {
			return err
		}
		if err := notifyNearlyUsed(q, r.Claim()); err != nil {
			return err
		}
	}
	if err := s.pool.Record(q, r.Claim(), p.launchDecision); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "launch", Object: "run", ID: r.ID, Project: r.ProjectID,
		After: map[string]any{"name": r.Name, "state": r.State, "demand": r.Demand}})
}

// scheduleRun records the decision that grants a run its shares.
func scheduleRun(q *store.Queries, pool Pool, r *models.Run, d models.Decision) error {
	r.State, r.Reason = models.RunStarting, models.Text{}
	if err := q.TransitionRun(r, models.RunQueued, models.Say("Scheduled. %s", d.Explanation)); err != nil {
		return err
	}
	if err := notifyRunScheduled(q, *r); err != nil {
		return err
	}
	if err := notifyNearlyUsed(q, r.Claim()); err != nil {
		return err
	}
	return pool.Record(q, r.Claim(), d)
}

// StopRun stops a run. A queued one ends at once; another one is stopped by the
// reconciler, and its shares are released when it is gone.
func (s *Service) StopRun(ctx context.Context, actor policies.Actor, id int64) (r models.Run, err error) {
	v, err := s.authorizeRun(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return r, err
	}
	err = s.access.WriteOwned(ctx, s.store, actor, v.UserID, v.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if _, err := q.LockProject(store.AllProjects, v.ProjectID); err != nil {
			return err
		}
		if r, err = q.LockRun(id); err != nil {
			return err
		}
		if r.State == models.RunEnded || r.State == models.RunStopping {
			return models.Conflict("This run is already %s.", r.State.Words())
		}
		r.StoppedBy = &actor.User.ID
		return stopRun(q, actor, &r, stoppedBy(actor, ""))
	})
	return r, err
}

// stopRun moves r to stopping, or ends it if it has no shares.
func stopRun(q *store.Queries, actor policies.Actor, r *models.Run, why models.Text) error {
	from := r.State
	r.State, r.Reason = models.RunStopping, why
	if from == models.RunQueued {
		r.State, r.EndedAt = models.RunEnded, new(q.Now())
	}
	if err := q.TransitionRun(r, from, why); err != nil {
		return err
	}
	if r.State == models.RunEnded {
		if err := notifyRunEnded(q, *r); err != nil {
			return err
		}
	}
	return actor.Audit(q, policies.Change{Action: "stop", Object: "run", ID: r.ID, Project: r.ProjectID,
		Before: map[string]any{"state": from}, After: map[string]any{"state": r.State}})
}

// authorizeRun returns a run for which the actor has the permission. A run that the actor
// may not see does not exist.
func (s *Service) authorizeRun(ctx context.Context, actor policies.Actor, id int64, right policies.Right) (models.RunView, error) {
	r, err := s.store.Read(ctx).Run(actor.Scope(), id)
	switch {
	case !actor.SignedIn():
		return r, s.access.Check(actor, policies.Platform, right)
	case err != nil:
		return r, err
	case !actor.MayReach(r.WorkspaceID):
		return models.RunView{}, models.NotFound("run")
	default:
		return r, s.access.CheckOwned(actor, r.UserID, r.ProjectID, right)
	}
}

// DeleteRun deletes a run that has ended, with its log.
func (s *Service) DeleteRun(ctx context.Context, actor policies.Actor, id int64) error {
	v, err := s.authorizeRun(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return err
	}
	if v.State != models.RunEnded {
		return models.Conflict("This run has not ended. Stop it first.")
	}
	err = s.access.WriteOwned(ctx, s.store, actor, v.UserID, v.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if err := q.DeleteRun(v.Run); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "run", ID: v.ID, Project: v.ProjectID,
			Before: map[string]any{"name": v.Name}})
	})
	if err == nil && s.Runs != nil && v.RuntimeState != nil {
		_ = s.Runs.Remove(ctx, v.RuntimeState) // the reconciler removes what remains
	}
	return err
}
