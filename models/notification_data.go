package models

import (
	"strconv"
	"time"
)

// WorkspaceNotification is the data of notifications about a workspace.
type WorkspaceNotification struct {
	WorkspaceID int64      `json:"workspace_id"`     // 0 for a run without a workspace
	RunID       int64      `json:"run_id,omitempty"` // of workspace.idle about a run
	ProjectID   int64      `json:"project_id"`
	Name        string     `json:"name"`
	UserID      int64      `json:"user_id"`
	EndsAt      *time.Time `json:"ends_at,omitempty"` // of its GPU share, in workspace.ending only
}

// RunNotification is the data of notifications about a run.
type RunNotification struct {
	RunID       int64  `json:"run_id"`
	ProjectID   int64  `json:"project_id"`
	Name        string `json:"name"`
	UserID      int64  `json:"user_id"`
	WorkspaceID int64  `json:"workspace_id,omitempty" doc:"workspace whose environment it has"`
	ExitCode    *int64 `json:"exit_code,omitempty" doc:"absent: it has not ended, or its exit code is not known"`
}

// ReservationNotification is the data of notifications about a reservation.
type ReservationNotification struct {
	ReservationID int64     `json:"reservation_id"`
	ProjectID     int64     `json:"project_id"`
	UserID        int64     `json:"user_id"`
	State         string    `json:"state"`
	StartsAt      time.Time `json:"starts_at"`
	EndsAt        time.Time `json:"ends_at"`
}

// Notification tells the user of a reservation something about it.
func (r Reservation) Notification(kind string, text Text) Notification {
	return Notification{Kind: kind, Link: "/reservations/" + strconv.FormatInt(r.ID, 10), Text: text,
		Data: ReservationNotification{ReservationID: r.ID, ProjectID: r.ProjectID, UserID: r.UserID, State: string(r.State),
			StartsAt: r.StartsAt.UTC(), EndsAt: r.EndsAt.UTC()}}
}

// ProviderNotification is the data of notifications about a provider.
type ProviderNotification struct {
	ProviderID int64  `json:"provider_id"`
	Name       string `json:"name"`
	State      string `json:"state"`
}

// QuotaNotification is the data of notifications that a quota is nearly used.
type QuotaNotification struct {
	ProjectID int64     `json:"project_id"`
	InUse     Resources `json:"in_use"`
	Quota     Resources `json:"quota"`
}

// StorageNotification is the data of notifications that a storage limit is exceeded.
type StorageNotification struct {
	ProjectID  int64     `json:"project_id"`
	MemberID   int64     `json:"member_id,omitempty" doc:"absent: the quota of the project is exceeded"`
	UsedBytes  int64     `json:"used_bytes" doc:"with the trash and old versions"`
	LimitMiB   int64     `json:"limit_mib" doc:"limit of the member's role, or the quota"`
	ReadOnlyAt time.Time `json:"read_only_at" doc:"workspaces that start after this time mount the directories read-only"`
}
