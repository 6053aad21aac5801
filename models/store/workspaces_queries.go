package store

import (
	"database/sql"
	"errors"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// CreateWorkspace inserts w with its holder and the first event of its history. An active
// workspace of the same member and name is a Conflict.
func (q *Queries) CreateWorkspace(w *models.Workspace, message models.Text) error {
	if err := workspaceNameTaken(q.createWithHolder(w, &w.HolderID, w.Claim()), w.Name); err != nil {
		return err
	}
	return q.AddEvent(w, message)
}

func workspaceNameTaken(err error, name string) error {
	return taken(err, "name",
		models.Say("You already have a workspace named %s in this project. Open it, stop it, or choose another name.", name))
}

// RenameWorkspace renames w, which is locked, as a new version; another active workspace of the
// same member and name is a Conflict.
func (q *Queries) RenameWorkspace(w *models.Workspace, name string) error {
	w.Name = name
	w.Version++
	if err := q.db.Model(w).UpdateColumn("version", w.Version).Error; err != nil {
		return err
	}
	if err := workspaceNameTaken(q.db.Model(&models.Claim{}).Where("id = ?", w.HolderID).UpdateColumn("name", name).Error, name); err != nil {
		return err
	}
	var devices []int64
	err := q.db.Model(&models.Share{}).Where("holder_id = ? AND until_at IS NULL", w.HolderID).Pluck("device_id", &devices).Error
	if err != nil {
		return err
	}
	if len(devices) > 0 {
		q.changeShares(devices...) // the cached pool contains its name
	}
	return q.AddEvent(w, models.Say("Renamed to %s.", name))
}

// ErrChanged is inside the Conflict of a refused transition: the row has changed
// since it was read.
var ErrChanged = errors.New("changed in the meantime")

// Transition writes w, whose State may have changed, if the row is still in
// state from and of w.Version; otherwise it is a Conflict and nothing is
// written. A message becomes a line of the workspace's history.
func (q *Queries) Transition(w *models.Workspace, from models.WorkspaceState, message models.Text) error {
	if w.State.Ended() {
		w.Secret = ""
	}
	own := append([]string{"id", "holder_id", "active_at", "worked_at", "work_signal", "reminded_at"}, claimColumns...)
	err := replace(q.db.Where("id = ? AND state = ?", w.ID, from), w, &w.Version, "workspace", own...)
	if errors.Is(err, models.ErrStale) {
		lost := models.Conflict("This workspace has changed. Reload it and try again.")
		lost.Err = ErrChanged
		return lost
	}
	if err != nil {
		return err
	}
	if err := q.saveClaim(w.Claim()); err != nil {
		return err
	}
	if from == models.StateRunning {
		q.Revoke("workspace", w.ID)
	}
	if message.Empty() {
		q.touchHolder(w.HolderView())
		return nil
	}
	return q.AddEvent(w, message)
}

// AddEvent appends a line to the history of w.
func (q *Queries) AddEvent(w *models.Workspace, message models.Text) error {
	return q.addEvent(w.HolderView(), message)
}

// workspaces selects workspaces with their claims.
func (q *Queries) workspaces() *gorm.DB { return withClaims(q.db, "workspaces") }

// Workspace finds a workspace of a project in scope.
func (q *Queries) Workspace(scope Scope, id int64) (w models.Workspace, err error) {
	return w, found(scope.projects(q.workspaces(), "project_id").Take(&w, id).Error, "workspace")
}

// LockWorkspace finds a workspace and locks it against changes until the transaction
// ends.
func (q *Queries) LockWorkspace(scope Scope, id int64) (w models.Workspace, err error) {
	return w, found(scope.projects(withClaims(q.locking("NO KEY UPDATE"), "workspaces"), "project_id").Take(&w, id).Error, "workspace")
}

// WorkspaceFilter selects workspaces; a zero field matches all.
type WorkspaceFilter struct {
	OwnedFilter[models.WorkspaceState]
	IDs        []int64
	ProviderID int64      // it uses a GPU of this one
	Search     string     // in its name, its owner's, its project's, or in that of a machine whose GPUs it uses
	IdleSince  *time.Time // running, and not known to have worked since
}

// searched is what a workspace is found by, in lower case.
const searched = `(LOWER(workspaces.name) LIKE @text ESCAPE '\'
	OR LOWER(users.name) LIKE @text ESCAPE '\' OR users.email LIKE @text ESCAPE '\'
	OR LOWER(projects.name) LIKE @text ESCAPE '\' OR EXISTS (SELECT 1 FROM shares
		JOIN devices ON devices.id = shares.device_id JOIN providers ON providers.id = devices.provider_id
		WHERE shares.holder_id = workspaces.holder_id AND shares.until_at IS NULL AND LOWER(providers.name) LIKE @text ESCAPE '\'))`

// Workspaces lists workspaces of projects in scope, newest first, with ids
// below page.After (0: from the newest).
func (q *Queries) Workspaces(scope Scope, f WorkspaceFilter, page Page) (list []models.WorkspaceView, err error) {
	if !storable(f.Search) {
		return nil, nil
	}
	db := f.newest(q.workspaceViews(scope), "workspaces", page)
	if len(f.IDs) > 0 {
		db = db.Where("workspaces.id IN ?", f.IDs)
	}
	if f.ProviderID != 0 {
		db = db.Where(`EXISTS (SELECT 1 FROM shares JOIN devices ON devices.id = shares.device_id
			WHERE shares.holder_id = workspaces.holder_id AND shares.until_at IS NULL AND devices.provider_id = ?)`, f.ProviderID)
	}
	if f.Search != "" {
		db = db.Where(searched, sql.Named("text", like(f.Search)))
	}
	if f.IdleSince != nil {
		db = db.Where("workspaces.state = ? AND workspaces.worked_at < ?", models.StateRunning, *f.IdleSince)
	}
	return list, db.Find(&list).Error
}

func (q *Queries) workspaceViews(scope Scope) *gorm.DB { return q.ownedViews(scope, "workspaces") }

// WorkspaceView finds a workspace with its names.
func (q *Queries) WorkspaceView(scope Scope, id int64) (v models.WorkspaceView, err error) {
	return v, found(q.workspaceViews(scope).Where("workspaces.id = ?", id).Take(&v).Error, "workspace")
}

// WorkspacesIn lists all workspaces in any of the states, oldest first.
func (q *Queries) WorkspacesIn(states ...models.WorkspaceState) (list []models.Workspace, err error) {
	return list, q.workspaces().Where("state IN ?", states).Order("id").Find(&list).Error
}

// WorkspaceOf finds the workspace of a holder.
func (q *Queries) WorkspaceOf(holder int64) (w models.Workspace, err error) {
	return w, found(q.workspaces().Where("holder_id = ?", holder).Take(&w).Error, "workspace")
}

// CountWorkspaces counts all workspaces by state.
func (q *Queries) CountWorkspaces() (map[models.WorkspaceState]int64, error) {
	return countBy[models.WorkspaceState](q.db.Model(&models.Workspace{}), "state", "*")
}

// WorkspaceEvents lists a workspace's history, oldest first, at most the
// newest 200 lines.
func (q *Queries) WorkspaceEvents(workspaceID int64) (events []models.WorkspaceEvent, err error) {
	newest := q.db.Model(&models.WorkspaceEvent{}).Where("workspace_id = ?", workspaceID).Order("id DESC").Limit(200)
	return events, q.db.Table("(?) AS e", newest).Order("id").Find(&events).Error
}

// TouchActivity records that a workspace was used at now.
func (q *Queries) TouchActivity(workspaceID int64, now time.Time) error {
	return q.db.Model(&models.Workspace{}).Where("id = ?", workspaceID).Update("active_at", now).Error
}

// SaveIdleness stores when w last worked and when its user was reminded. Pages are told if
// the reminder changes.
func (q *Queries) SaveIdleness(w models.Workspace, reminder bool) error {
	if reminder {
		q.touchHolder(w.HolderView())
	}
	return q.db.Model(&models.Workspace{}).Where("id = ?", w.ID).
		UpdateColumns(map[string]any{"worked_at": w.WorkedAt, "work_signal": w.WorkSignal, "reminded_at": w.RemindedAt}).Error
}

// GPUUtilisation returns the utilisation of the GPUs of workspaces in percent, by
// workspace: as measured after a time, on real devices that nothing else shares.
// Workspaces without such a device are absent.
func (q *Queries) GPUUtilisation(after time.Time) (map[int64]int64, error) {
	var rows []struct{ WorkspaceID, Utilisation int64 }
	err := q.measuredShares(after).Select("workspaces.id AS workspace_id, MAX(device_states.utilisation) AS utilisation").
		Joins("JOIN workspaces ON workspaces.holder_id = shares.holder_id").
		Group("workspaces.id").Scan(&rows).Error
	used := make(map[int64]int64, len(rows))
	for _, r := range rows {
		used[r.WorkspaceID] = r.Utilisation
	}
	return used, err
}

// GPUUtilisationOf is that of one holder; 0 also if it is not known.
func (q *Queries) GPUUtilisationOf(holder int64, after time.Time) (percent int64, err error) {
	return percent, q.measuredShares(after).Select("COALESCE(MAX(device_states.utilisation), 0)").
		Where("shares.holder_id = ?", holder).Scan(&percent).Error
}

// measuredShares are the shares of real devices that nothing else shares, with a measurement
// after a time.
func (q *Queries) measuredShares(after time.Time) *gorm.DB {
	return q.db.Table("shares").
		Joins("JOIN devices ON devices.id = shares.device_id AND devices.simulated = ?", false).
		Joins("JOIN device_states ON device_states.device_id = shares.device_id AND device_states.at > ?", after).
		Where("shares.until_at IS NULL").
		Where(`NOT EXISTS (SELECT 1 FROM shares AS others WHERE others.device_id = shares.device_id
			AND others.until_at IS NULL AND others.holder_id <> shares.holder_id)`)
}

// CountActiveWorkspaces counts a user's active workspaces.
func (q *Queries) CountActiveWorkspaces(userID int64) (n int64, err error) {
	return n, q.db.Model(&models.Workspace{}).Where("user_id = ? AND state IN ?", userID, models.ActiveStates).Count(&n).Error
}
