package pool

import (
	"time"

	"weir/models"
	"weir/pool/projects"
)

// patience is how long a request that waits for the pool lets later ones pass
// it. Until then what is free is used by whom it fits; from then on it is
// kept together for the one that waits, so that small requests cannot starve
// a large one.
const patience = 10 * time.Minute

// withinRoom tells whether a waiting workspace's member may hold its demand
// now.
func withinRoom(q *models.Queries, w models.Workspace) (bool, error) {
	project, err := q.Project(models.Everything, w.ProjectID)
	if err != nil {
		return false, err
	}
	m, err := q.MemberView(models.Everything, w.ProjectID, w.MemberID)
	if err != nil {
		if models.KindOf(err) == models.KindNotFound {
			err = nil
		}
		return false, err
	}
	use, err := projects.UseOf(q, project, m.ID, m.Peak)
	return err == nil && len(use.ExceededBy(w.Demand.Resources())) == 0, err
}
