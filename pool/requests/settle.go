package requests

import (
	"weir/models"
	"weir/models/store"
)

// pending reads a pending request.
func pending(q *store.Queries, id, version int64) (models.QuotaRequest, error) {
	v, err := q.Request(id)
	if err != nil {
		return v.QuotaRequest, err
	}
	if v.State != models.RequestPending {
		return v.QuotaRequest, settledBy(v)
	}
	return v.QuotaRequest, models.CheckVersion("request", version, v.Version)
}

// settle closes a request, unless it is closed already.
func settle(q *store.Queries, req *models.QuotaRequest) error {
	settled, err := q.CloseRequest(req)
	if err != nil || settled {
		return err
	}
	v, err := q.Request(req.ID)
	if err != nil {
		return err
	}
	return settledBy(v)
}

// settledBy is the error for a closed request.
func settledBy(v models.RequestView) error {
	switch v.State {
	case models.RequestWithdrawn:
		return models.Conflict("This request was withdrawn by %s.", v.RequesterName)
	case models.RequestRefused:
		return models.Conflict("%s has already refused this request.", v.DeciderName)
	default:
		return models.Conflict("%s has already approved this request.", v.DeciderName)
	}
}
