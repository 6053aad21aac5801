package store

import (
	"gorm.io/gorm"

	"weir/models"
)

// CreateRun inserts r with its holder and the first line of its history.
func (q *Queries) CreateRun(r *models.Run, message models.Text) error {
	if err := q.createWithHolder(r, &r.HolderID, r.Claim()); err != nil {
		return err
	}
	return q.AddRunEvent(*r, message)
}

// TransitionRun writes r, whose State may have changed, if the row is still in the state
// from and of r.Version; otherwise it is a Conflict and nothing is written. A message
// becomes a line of the run's history.
func (q *Queries) TransitionRun(r *models.Run, from models.RunState, message models.Text) error {
	db := q.db.Where("id = ? AND state = ?", r.ID, from)
	own := append([]string{"id", "holder_id", "renewed_at", "worked_at", "reminded_at"}, claimColumns...)
	if err := replace(db, r, &r.Version, "run", own...); err != nil {
		return err
	}
	if err := q.saveClaim(r.Claim()); err != nil {
		return err
	}
	return q.AddRunEvent(*r, message)
}

// SaveLease writes when the lease of a run was renewed, when its program last worked and when
// its user was reminded. Pages are told only if it matters for them.
func (q *Queries) SaveLease(r models.Run, told bool) error {
	if told {
		q.touchHolder(r.HolderView())
		q.touchWorkspaceOf(r)
	}
	return q.db.Model(&models.Run{ID: r.ID}).Updates(map[string]any{
		"renewed_at": r.RenewedAt, "worked_at": r.WorkedAt, "reminded_at": r.RemindedAt}).Error
}

// AddRunEvent appends a line to the history of r, unless the message is empty.
func (q *Queries) AddRunEvent(r models.Run, message models.Text) error {
	q.touchWorkspaceOf(r)
	if message.Empty() {
		q.touchHolder(r.HolderView())
		return nil
	}
	return q.addEvent(r.HolderView(), message)
}

// RunEvents lists a run's history, oldest first, at most the newest 200 lines.
func (q *Queries) RunEvents(run int64) (events []models.RunEvent, err error) {
	newest := q.db.Model(&models.RunEvent{}).Where("run_id = ?", run).Order("id DESC").Limit(200)
	return events, q.db.Table("(?) AS e", newest).Order("id").Find(&events).Error
}

// touchWorkspaceOf tells the page of the workspace in whose environment a run is.
func (q *Queries) touchWorkspaceOf(r models.Run) {
	if r.WorkspaceID != nil {
		q.Touch("workspace", *r.WorkspaceID)
	}
}

// DeleteRun deletes a run that has ended. Its holder stays, with the use that was counted.
func (q *Queries) DeleteRun(r models.Run) error {
	q.touchHolder(r.HolderView())
	return q.db.Where("state = ?", models.RunEnded).Delete(&models.Run{ID: r.ID}).Error
}

// Run finds a run of a project in scope.
func (q *Queries) Run(scope Scope, id int64) (r models.RunView, err error) {
	return r, found(q.runViews(scope).Where("runs.id = ?", id).Take(&r).Error, "run")
}

// LockRun finds a run and locks it against changes until the transaction ends.
func (q *Queries) LockRun(id int64) (r models.Run, err error) {
	return r, found(withClaims(q.locking("NO KEY UPDATE"), "runs").Take(&r, id).Error, "run")
}

// RunOf finds the run of a holder.
func (q *Queries) RunOf(holder int64) (r models.Run, err error) {
	return r, found(withClaims(q.db, "runs").Where("holder_id = ?", holder).Take(&r).Error, "run")
}

// RunsIn lists all runs in any of the states, oldest first.
func (q *Queries) RunsIn(states ...models.RunState) (list []models.Run, err error) {
	return list, withClaims(q.db, "runs").Where("state IN ?", states).Order("id").Find(&list).Error
}

// OrphanedRuns lists the runs with a lease that go on although their workspace has stopped or
// stops: what renews them runs in it, unless they are attached.
func (q *Queries) OrphanedRuns() (list []models.Run, err error) {
	return list, q.leasedRuns().Where("workspace_id IS NOT NULL").
		Where("NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = runs.workspace_id AND w.state IN ?)",
			[]models.WorkspaceState{models.StateRequested, models.StateQueued, models.StateStarting, models.StateRunning}).
		Order("id").Find(&list).Error
}

// LeasedRuns lists the runs with a lease that go on in a workspace and end with it.
func (q *Queries) LeasedRuns(workspace int64) (list []models.Run, err error) {
	return list, q.leasedRuns().Where("workspace_id = ?", workspace).Order("id").Find(&list).Error
}

func (q *Queries) leasedRuns() *gorm.DB {
	going := []models.RunState{models.RunQueued, models.RunStarting, models.RunRunning}
	return withClaims(q.db, "runs").Where("state IN ? AND lease_seconds > 0 AND NOT attached", going)
}

// RunStates lists the ids, members and states of all runs.
func (q *Queries) RunStates() (list []models.Run, err error) {
	return list, q.db.Table("runs").Select("id, member_id, state").Find(&list).Error
}

// CountLiveRuns counts the runs of a member that have not ended.
func (q *Queries) CountLiveRuns(member int64) (n int64, err error) {
	return n, q.db.Model(&models.Run{}).Where("member_id = ? AND state IN ?", member, models.LiveRuns).Count(&n).Error
}

// SurplusRuns lists the ended runs of a member but for the newest.
func (q *Queries) SurplusRuns(member int64, newest int) (list []models.Run, err error) {
	return list, withClaims(q.db, "runs").Where("member_id = ? AND state = ?", member, models.RunEnded).
		Order("id DESC").Limit(1000).Offset(newest).Find(&list).Error
}

// Runs lists runs of projects in scope, newest first.
func (q *Queries) Runs(scope Scope, f RunFilter, page Page) (list []models.RunView, err error) {
	db := q.runViews(scope)
	if f.WorkspaceID != 0 {
		db = db.Where("runs.workspace_id = ?", f.WorkspaceID)
	}
	return list, f.newest(db, "runs", page).Find(&list).Error
}

func (q *Queries) runViews(scope Scope) *gorm.DB { return q.ownedViews(scope, "runs") }
