package models

import (
	"slices"
	"time"
)

// ReservationState is the state of a reservation: granted → active → done; canceled or
// expired from both.
type ReservationState string

const (
	ReservationGranted  ReservationState = "granted"  // it has not begun
	ReservationActive   ReservationState = "active"   // it can be used
	ReservationDone     ReservationState = "done"     // its time is over
	ReservationCanceled ReservationState = "canceled" // by somebody, or because it cannot be kept
	ReservationExpired  ReservationState = "expired"  // it was not used in time
)

// LiveReservations are the states of reservations that have not ended.
var LiveReservations = []ReservationState{ReservationGranted, ReservationActive}

// Ended reports whether the state is final.
func (s ReservationState) Ended() bool { return s != ReservationGranted && s != ReservationActive }

// Words is the state's name for users.
func (s ReservationState) Words() Text {
	switch s {
	case ReservationGranted:
		return Say("reserved")
	case ReservationActive:
		return Say("active")
	case ReservationDone:
		return Say("done")
	case ReservationCanceled:
		return Say("canceled")
	default:
		return Say("expired")
	}
}

// Reservation is GPU shares that are reserved for a member of a project for a span of time.
// GPU amounts are per GPU.
type Reservation struct {
	ID              int64
	ProjectID       int64
	MemberID        int64
	UserID          int64
	State           ReservationState
	Outcome         string // of the decision: granted, partial or delayed
	Reason          Text   // why it ended
	GPUs            int64  `gorm:"column:gpus"`
	Cores           int64
	GPUMemoryMiB    int64  `gorm:"column:gpu_memory_mib"`
	GPUModel        string `gorm:"column:gpu_model"`
	DurationMinutes int64
	WindowFrom      time.Time // the span in which it was asked for
	WindowUntil     time.Time
	AcceptPart      bool // a part at once and the rest later was acceptable
	AcceptLater     bool // a later beginning was acceptable
	Class           PriorityClass
	QoS             QoS `gorm:"column:qos"`
	TaskType        TaskType
	Score           float64 // when it was granted
	ScoreParts      ScoreParts
	Explanation     Text       // by which objectives its devices were chosen
	ClientZone      string     // near which machines are preferred; empty: none
	LeastCores      int64      // per GPU, to which it can be shrunk
	MovedAt         *time.Time // when a request with a higher score last changed it
	StartsAt        time.Time
	EndsAt          time.Time
	Version         int64
	CreatedAt       time.Time
	UsedAt          *time.Time // when it was first used
	UsableAt        *time.Time // since when it can be used, if later than its start: its machine or the portal was away
	EndedAt         *time.Time
	ToldEnd         *time.Time // the end of which its user was told while it was in use
	ToldUnusable    bool       // its user was told that it has begun and cannot be used, and not yet that it can
}

// ReservationGrant is an amount of a device that a reservation has for a span of time.
type ReservationGrant struct {
	ID            int64
	ReservationID int64
	DeviceID      int64
	Cores         int64
	MemoryMiB     int64
	StartsAt      time.Time
	EndsAt        time.Time
}

// Overlaps reports whether the spans of two grants overlap.
func (g ReservationGrant) Overlaps(other ReservationGrant) bool {
	return g.StartsAt.Before(other.EndsAt) && other.StartsAt.Before(g.EndsAt)
}

// GrantView is a grant with its device.
type GrantView struct {
	ReservationGrant
	ProviderName string
	Number       int64
	Model        string
	Simulated    bool
}

// ReservedView is a grant with the project of its reservation.
type ReservedView struct {
	ReservationGrant
	ProjectID int64
	UserID    int64
}

// AssumedReservations are reservations that a decision leaves out, by ID, and grants that it
// takes into account as if they were there.
type AssumedReservations struct {
	Without []int64
	With    []ReservedView
}

// Among are the grants of a list that are not left out, and those that are assumed.
func (a AssumedReservations) Among(list []ReservedView) []ReservedView {
	if len(a.Without)+len(a.With) == 0 {
		return list
	}
	kept := make([]ReservedView, 0, len(list)+len(a.With))
	for _, g := range list {
		if !slices.Contains(a.Without, g.ReservationID) {
			kept = append(kept, g)
		}
	}
	return append(kept, a.With...)
}

// ReservationView is a reservation with names.
type ReservationView struct {
	Reservation
	ProjectName string
	UserName    string
}
