package requests

import "weir/models"

// proposal is what differs between the kinds of requests. Fields are named as in
// the input of the kind.
type proposal interface {
	// examine refuses what no rule would allow, whoever decides.
	examine(r *review) error
	// growth is what applying it adds to the quotas of projects.
	growth(r *review) models.Resources
	// apply does it.
	apply(r *review) error
}

// proposalOf is what a request proposes.
func proposalOf(r *review) proposal {
	switch t := r.terms; t.Kind() {
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
