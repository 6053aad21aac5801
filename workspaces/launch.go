package workspaces

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Preview plans a launch without any change. Without a project, it is in the first in
// which the actor can launch now; if there is none, the plan is empty.
func (s *Service) Preview(ctx context.Context, actor policies.Actor, launch LaunchInput) (p Plan, err error) {
	if launch.ProjectID != 0 || !actor.SignedIn() {
		if err := s.access.Check(actor, launch.ProjectID, policies.WorkspaceLaunch); err != nil {
			return p, err
		}
	}
	model, modelErr := s.readModel(ctx, actor, launch)
	if err := onlyInternal(modelErr); err != nil {
		return p, err
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		list, err := launchable(q, actor)
		if err != nil || launch.ProjectID == 0 && len(list) == 0 {
			return err
		}
		project, err := projectOf(q, actor, launch, list)
		if err != nil {
			return err
		}
		in, err := s.readPlanInput(q, actor, project, launch, model, modelErr)
		if err == nil {
			p = plan(in)
			p.Projects = list
		}
		return err
	})
	return p, err
}

// Launchable lists the projects in which the actor can launch now.
func (s *Service) Launchable(ctx context.Context, actor policies.Actor) ([]models.Project, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.WorkspaceLaunch)
	}
	return launchable(s.store.Read(ctx), actor)
}

// launchable lists the projects in which the actor can launch now.
func launchable(q *store.Queries, actor policies.Actor) ([]models.Project, error) {
	var ids []int64
	for project := range actor.Grants {
		if actor.CanLaunchIn(project) {
			ids = append(ids, project)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := q.ProjectsOf(actor.Scope(), ids)
	return slices.DeleteFunc(list, func(p models.Project) bool { return !p.Active(q.Now()) }), err
}

// projectOf is the project of a launch: one of a list, the first one by default, or
// another one, for an actor who may launch in all.
func projectOf(q *store.Queries, actor policies.Actor, in LaunchInput, list []models.Project) (models.Project, error) {
	for _, p := range list {
		if in.ProjectID == 0 || p.ID == in.ProjectID {
			return p, nil
		}
	}
	return q.Project(actor.Scope(), in.ProjectID)
}

// Launch starts a workspace, or queues it if in.WhenInsufficient allows that. It commits
// what a preview of the same state shows. If the demand cannot be satisfied now and
// in.WhenInsufficient is refuse, the error is a *Insufficient.
func (s *Service) Launch(ctx context.Context, actor policies.Actor, launch LaunchInput) (w models.Workspace, err error) {
	if err := cmp.Or(s.access.Check(actor, launch.ProjectID, policies.WorkspaceLaunch), s.store.CheckSpace()); err != nil {
		return w, err
	}
	var p Plan
	var refused *Insufficient
	model, modelErr := s.readModel(ctx, actor, launch)
	if err := onlyInternal(modelErr); err != nil {
		return w, err
	}
	err = s.access.Write(ctx, s.store, actor, launch.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		project, err := q.Project(actor.Scope(), launch.ProjectID) // which Write has locked
		if err != nil {
			return err
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		in, err := s.readPlanInput(q, actor, project, launch, model, modelErr)
		if err != nil {
			return err
		}
		p = plan(in)
		if p.Rejection != nil {
			return p.Rejection
		}
		if refused = p.Insufficient(); refused != nil {
			return refused
		}
		w = p.workspace(q, actor, in.member)
		if err := s.commit(q, actor, &w, p); err != nil || launch.ReservationID == 0 {
			return err
		}
		return q.UseReservation(launch.ReservationID, q.Now())
	})
	if refused != nil && launch.ReservationID == 0 {
		err = errors.Join(refused, s.recordUnmet(ctx, actor, p))
	}
	return w, err
}

// readModel reads the model of a launch. The error is for the field.
func (s *Service) readModel(ctx context.Context, actor policies.Actor, in LaunchInput) (m Model, err error) {
	if in.ModelPath == "" {
		return m, nil
	}
	if s.Models == nil {
		return m, models.Invalid(modelParameter, "was not found, or you cannot read it")
	}
	m.Path, m.Needs, err = s.Models.ModelNeeds(ctx, actor, in.ProjectID, in.ModelPath)
	switch e, _ := errors.AsType[*models.Error](err); models.KindOf(err) {
	case models.KindNotFound:
		return m, models.Invalid(modelParameter, "was not found, or you cannot read it")
	case models.KindConflict, models.KindInvalid:
		if len(e.Fields) > 0 {
			return m, models.Invalid(modelParameter, "%s", e.Fields[0].Reason)
		}
		return m, models.Invalid(modelParameter, "%s", e.Message)
	}
	return m, err
}

// workspace is the planned workspace as requested.
func (p Plan) workspace(q *store.Queries, actor policies.Actor, m store.LaunchMember) models.Workspace {
	return models.Workspace{ProjectID: p.Project.ID, MemberID: m.ID, UserID: actor.User.ID, EnvironmentID: p.Environment.ID,
		Name: p.name, State: models.StateRequested, Demand: p.Demand, Target: p.Target.Parameters,
		Secret: policies.NewSecret(), Version: 1, RequestedAt: q.Now()}
}

// commit writes the planned workspace, and takes its shares or queues it.
func (s *Service) commit(q *store.Queries, actor policies.Actor, w *models.Workspace, p Plan) (err error) {
	if err := q.CreateWorkspace(w, models.Say("Requested: %s.", describe(p.Demand))); err != nil {
		return err
	}
	w.Demand = p.Target.Demand
	if p.State == models.StateStarting {
		if err = s.pool.Take(q, w.Holder(), p.launchDecision); err == nil {
			err = schedule(q, s.pool, w, p.launchDecision)
		}
	} else {
		w.State, w.Reason = models.StateQueued, p.launchDecision.Explanation
		if err = q.Transition(w, models.StateRequested, models.Say("Queued: %s.", p.launchDecision.Explanation)); err == nil {
			err = s.pool.Record(q, w.Claim(), p.launchDecision)
		}
	}
	if err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "launch", Object: "workspace", ID: w.ID, Project: w.ProjectID,
		After: map[string]any{"name": w.Name, "state": w.State, "demand": w.Demand}})
}

// schedule records the decision that grants a workspace its shares.
func schedule(q *store.Queries, pool Pool, w *models.Workspace, d models.Decision) error {
	from := w.State
	w.State, w.Reason, w.Progress, w.Generation = models.StateStarting, models.Text{}, 0, w.Generation+1
	if err := q.Transition(w, from, models.Say("Scheduled. %s", d.Explanation)); err != nil {
		return err
	}
	if err := notifyTransition(q, w, from); err != nil {
		return err
	}
	if err := notifyNearlyUsed(q, w.Claim()); err != nil {
		return err
	}
	return pool.Record(q, w.Claim(), d)
}

// recordUnmet records the demand of a launch that the pool cannot satisfy now, for
// capacity planning.
func (s *Service) recordUnmet(ctx context.Context, actor policies.Actor, p Plan) error {
	c := models.Claim{Holder: models.Holder{ProjectID: p.Project.ID, UserID: actor.User.ID}, Demand: p.Demand}
	return s.store.InTx(ctx, func(q *store.Queries) error {
		return s.pool.RecordUnmet(q, c, p.Decision.Explanation)
	})
}

func describe(d models.Demand) models.Text {
	if d.GPUs == 0 {
		return models.Say("%s CPU, %s memory, no GPU", models.Quantity("cpu_milli", d.CPUMilli), models.FormatMiB(d.MemoryMiB))
	}
	return models.Say("%s CPU, %s memory, %d × %d GPU cores with %s GPU memory", models.Quantity("cpu_milli", d.CPUMilli),
		models.FormatMiB(d.MemoryMiB),
		d.GPUs, d.Cores, models.FormatMiB(d.GPUMemoryMiB))
}
