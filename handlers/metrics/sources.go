package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir/models/store"
	"weir/pool"
	"weir/workspaces"
)

// Sources are the inputs of the metrics.
type Sources struct {
	Store      *store.Store
	Pool       *pool.Scheduler
	Workspaces *workspaces.Service
	Streams    func() (open int, encoded int64) // of events
	Others     []prometheus.Collector           // of other packages
}

// scrapeTime is how long a scrape may take.
const scrapeTime = 5 * time.Second
