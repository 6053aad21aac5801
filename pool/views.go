package pool

import (
	"time"

	"weir/models"
	"weir/pool/placement"
	"weir/pool/queue"
)

// View is the pool as one actor may see it: shares of projects that are not
// the actor's have no names.
type View struct {
	Providers []ProviderView
	Totals    placement.Totals
	Computing int64 // percent of the measured GPUs that compute now, on average; -1 when nothing is measured
	Waiting   []WaitingView
	Unmet     []UnmetView // for administrators only
	Decisions []DecisionView
	Placed    int64 // decisions so far
}

// DecisionView is a decision that the actor may see.
type DecisionView = models.DecisionView

// ProviderView is a provider with its devices.
type ProviderView struct {
	models.Provider
	Devices   []DeviceView
	OwnerName string
	Lends     bool       // its hours are open
	Until     *time.Time // when that changes
	Holders   int        // people who hold shares there
	Chosen    bool       // it lends to chosen projects only; Terms name those of them that the actor may know
	Since     *time.Time // its agent was enrolled; only where one provider is asked for
	Manage    bool       // the actor may set its terms, drain, recall and remove it
}

// DeviceView is a device with what is held and free of it.
type DeviceView struct {
	models.Device
	ProviderName  string
	ProviderState string
	Shares        []ShareView
	FreeCores     int64
	FreeMemoryMiB int64
	Lent          bool                // the terms of its owner lend it to somebody
	Measured      *models.DeviceState // nil when nothing was measured yet
	Manage        bool                // the actor may set how it is shared
}

// ShareView is a share; of a foreign project only its size is told.
type ShareView struct {
	models.ShareView
	Anonymous bool
}

// WaitingView is a workspace that waits for shares.
type WaitingView struct {
	models.QueuedView
	Place     int
	Behind    queue.Criterion // why it does not stand before its predecessor
	Forecast  Forecast
	Anonymous bool
}
