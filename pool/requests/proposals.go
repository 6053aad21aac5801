package requests

import (
	"time"

	"weir/models"
)

// proposal is a kind of request. Its errors name the fields of the kind's input.
type proposal interface {
	// check validates and normalizes the terms alone.
	check(now time.Time) error
	// examine validates the terms of a request or decision.
	examine(r *review) error
	// proposed is the project p afterwards, as far as quotas are concerned.
	proposed(p models.Project) models.Project
	// apply makes the change.
	apply(r *review) error
}

// proposalOf is the proposal of terms.
func proposalOf(t models.Requested) proposal {
	switch t.Kind() {
	case models.RequestProject:
		return projectProposal{t.Project}
	case models.RequestQuota:
		return quotaProposal{t.Quota}
	case models.RequestRole:
		return roleProposal{RoleSpec: t.Role}
	case models.RequestLimit:
		return limitProposal{LimitSpec: t.Limit}
	case models.RequestPeriod:
		return periodProposal{t.Period}
	case models.RequestDeadline:
		return deadlineProposal{DeadlineSpec: t.Deadline}
	default:
		return joinProposal{JoinSpec: t.Join}
	}
}
