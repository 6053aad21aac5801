package broker

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// Pool is the GPUs that can be reserved.
type Pool interface {
	// Reservable returns what a project can reserve for a demand, whose GPU memory it
	// completes: devices, and what is taken of them from now on, with reservations as
	// they are assumed to be.
	Reservable(q *store.Queries, project int64, d models.Demand,
		as models.AssumedReservations) (models.Demand, []timeline.Device, []timeline.Grant, error)
	// MatchesModel reports whether the model of a device is what was asked for.
	MatchesModel(model, asked string) bool
	// Unusable lists those of reservations of whose GPUs one that they have now cannot be used.
	Unusable(q *store.Queries, reservations []int64) ([]int64, error)
	// FairShares returns for a project its decayed use and that of all, in GPU core-hours,
	// and the project's share.
	FairShares(q *store.Queries) (func(p models.Project) (use, all, share float64), error)
}

// Rules bound what is reserved.
type Rules struct {
	MaxAhead    time.Duration // from now until the end of a reservation
	MaxDuration time.Duration
	// Budget bounds the GPU core-hours that a member has reserved ahead: the limit of the
	// role for this time.
	Budget time.Duration
	// UseWithin is how soon after its start, or after it can be used, a reservation must be used.
	UseWithin  time.Duration
	Objectives Objectives
}

// DefaultRules are the rules of a new server.
var DefaultRules = Rules{MaxAhead: 90 * 24 * time.Hour, MaxDuration: 7 * 24 * time.Hour, Budget: 40 * time.Hour,
	UseWithin: 15 * time.Minute, Objectives: Objectives{Placement: Pack}}

// Service decides on requests for reservations.
type Service struct {
	store  *store.Store
	access *policies.Access
	pool   Pool
	rules  Rules

	arrivals arrivals
	advanced time.Time // when Advance last succeeded; zero: not in this process
}

// New returns a service.
func New(store *store.Store, access *policies.Access, pool Pool, rules Rules) *Service {
	return &Service{store: store, access: access, pool: pool, rules: rules, arrivals: arrivals{deciding: make(chan struct{}, 1)}}
}
