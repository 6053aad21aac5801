package workspaces

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/runtime"
)

// Pool assigns shares of GPUs. Its methods run in the caller's transaction.
type Pool interface {
	// Availability reads what decisions about new workspaces follow from. They hold
	// until the end of a transaction that has locked the pool.
	Availability(q *store.Queries) (models.Availability, error)
	// DisplayedAvailability is Availability as pages show it.
	DisplayedAvailability(ctx context.Context) (models.Availability, error)
	// Take takes the shares that a decision grants.
	Take(q *store.Queries, h models.Holder, d models.Decision) error
	// Claim decides on a claim of the queue, and takes its shares if it is granted.
	Claim(q *store.Queries, c models.Claim) (models.Decision, error)
	// Record saves a decision.
	Record(q *store.Queries, c models.Claim, d models.Decision) error
	// RecordUnmet saves a claim of a launch that was refused.
	RecordUnmet(q *store.Queries, c models.Claim, why models.Text) error
	// Release ends the shares of a holder.
	Release(q *store.Queries, holder int64) error
	// ReleaseAt ends the shares of a holder that has ended before now.
	ReleaseAt(q *store.Queries, holder int64, at time.Time) error
	// Reserved returns how demands of workspaces in a reservation are decided on, and one with what it leaves open.
	Reserved(q *store.Queries, r models.Reservation, d models.Demand) (models.Demand, func(models.Demand) models.Decision, error)
	// InTheWay lists the holders whose time is over and that do not leave what is reserved until a moment.
	InTheWay(q *store.Queries, at time.Time) ([]models.Claim, error)
	// QueueEntries returns the queue, with the current decision on each entry.
	QueueEntries(q *store.Queries) ([]models.QueueEntry, error)
}

// Storage is the shared directories.
type Storage interface {
	// EnsureMounts returns the directories of a member's workspace and what the rules give
	// the member, and creates those that are missing.
	EnsureMounts(ctx context.Context, h models.DirectoryUser) ([]models.Mount, []models.PathAccess, error)
	// Withdrawn returns a directory to which the rules give a member less access than they
	// gave before; "" if there is none.
	Withdrawn(ctx context.Context, h models.DirectoryUser, access []models.PathAccess) (models.FilePath, error)
	// IDs returns the user of the member and the group of the project; 0: all share one.
	IDs(h models.DirectoryUser) (uid, gid int64, err error)
}

// Served plans models that are served, and writes their parts.
type Served interface {
	// Plan plans a model on a number of parts; on 0, as few as the devices in question have memory for.
	Plan(ctx context.Context, actor policies.Actor, path models.FilePath, parts int64, in models.ServedInput, on models.DeviceQuery) (
		models.ServedModel, error)
	// Write writes the parts of a deployment.
	Write(ctx context.Context, d models.Deployment) ([]models.WrittenPart, error)
	// LinkParts gives a deployment the parts of another one, which has the same plan.
	LinkParts(d models.Deployment, of int64) error
	// Files is the state of the files of a deployment's model: another one for other files.
	Files(ctx context.Context, d models.Deployment) (string, error)
	// Generation is what computing with a deployment needs besides its parts.
	Generation(d models.Deployment) (serving.Generation, error)
	// Directory is what the sandbox of a part sees.
	Directory(d models.Deployment, part int64) string
	// WriteWorker gives a part the program of this version, before its process starts.
	WriteWorker(d models.Deployment, part int64) error
	// Remove deletes what a deployment has on the disk, but its parts, which others can have, too.
	Remove(d models.Deployment) error
	// Sweep deletes what no deployment uses that live returns.
	Sweep(ctx context.Context, live func(context.Context) ([]int64, error)) error
}

// Actors reads the present rights of actors.
type Actors interface {
	// RefreshActor returns the actor with its present grants; an error if its account is
	// disabled or its session or token has ended.
	RefreshActor(ctx context.Context, actor policies.Actor) (policies.Actor, error)
}

// Service launches and stops workspaces. It writes the desired state, which the
// reconciler then establishes.
type Service struct {
	store  *store.Store
	access *policies.Access
	pool   Pool

	// Models finds the models that workspaces are launched for; nil: there are none.
	Models Models

	// Logs reads what workspaces print; nil in tests without it.
	Logs interface {
		Log(context.Context, runtime.State) (string, error)
	}

	// Runs runs commands.
	Runs runtime.Runs

	// Parts runs the parts of deployments, Served plans their models, and Actors knows who may
	// still use them; nil in tests without deployments.
	Parts  runtime.Parts
	Served Served
	Actors Actors

	queues   requestQueues
	waiting  requestQueues // until an idle deployment serves
	requests authorizedRequests
	counts   requestCounts

	// FindForeign finds what others run beside it; nil: nothing.
	FindForeign func() ([]models.Foreign, error)

	// Defaults are the platform's limits for idle workspaces.
	Defaults models.LaunchParameters

	admissions *store.Cache[admissionKey, store.Admission]
}

// NewService returns a service.
func NewService(db *store.Store, access *policies.Access, pool Pool) *Service {
	return &Service{store: db, access: access, pool: pool, admissions: store.NewCache[admissionKey, store.Admission](db, store.MaxCached)}
}

// admissionKey is who is admitted where: the visit with a hash, or the owner.
type admissionKey struct {
	visit           string
	user, workspace int64
}

// stopWorkspace moves w to stopping, or to stopped if it has no shares.
func stopWorkspace(q *store.Queries, actor policies.Actor, w *models.Workspace, why models.Text) error {
	from := w.State
	w.State, w.Reason = models.StateStopping, why
	if !from.UsesResources() {
		w.State, w.EndedAt = models.StateStopped, new(q.Now())
	}
	if err := q.Transition(w, from, why); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "stop", Object: "workspace", ID: w.ID, Project: w.ProjectID,
		Before: map[string]any{"state": from}, After: map[string]any{"state": w.State}})
}

// authorize returns a workspace for which the actor has the permission. A
// workspace that the actor may not see does not exist.
func (s *Service) authorize(ctx context.Context, actor policies.Actor, id int64, right policies.Right) (models.Workspace, error) {
	w, err := s.store.Read(ctx).Workspace(actor.Scope(), id)
	switch {
	case !actor.SignedIn():
		return w, s.access.Check(actor, policies.Platform, right)
	case err != nil:
		return w, err
	default:
		return w, s.access.CheckOwned(actor, w.UserID, w.ProjectID, right)
	}
}

// Activity records that a workspace was used now, at most once a minute.
func (s *Service) Activity(ctx context.Context, id int64) error {
	w, err := s.store.Read(ctx).Workspace(store.AllProjects, id)
	now := s.store.Now()
	if err != nil || (w.ActiveAt != nil && now.Sub(*w.ActiveAt) < time.Minute) {
		return err
	}
	return s.store.InTx(ctx, func(q *store.Queries) error { return q.TouchActivity(id, now) })
}
