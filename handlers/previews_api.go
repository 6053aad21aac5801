package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) previewsOperations(s section) {
	register(a, s, route{http.MethodPost, "/projects/{id}/preview", 200, "preview", "Tell what a change of a role, a member or the quota would make of the quota, and whether it would be refused; nothing is changed"}, a.previewChange)
}

// Preview is what a change would make of a project's quota.
type Preview struct {
	Fits      bool           `json:"fits" doc:"whether the change would be accepted now; of a change that you may not make, whether its numbers would fit"`
	Resources []PreviewRow   `json:"resources"`
	Members   int64          `json:"members" doc:"whose promise changes"`
	Headroom  *int64         `json:"headroom,omitempty" doc:"members that could be added in the role afterwards; absent: as many as there are"`
	Holders   []Holder       `json:"holders,omitempty" doc:"members who hold more now than the new limit"`
	Detail    string         `json:"detail,omitempty" doc:"why it would be refused"`
	Errors    []ProblemField `json:"errors,omitempty" doc:"each field that would be refused, and why"`
}

// PreviewRow is what a change would make of one resource.
type PreviewRow struct {
	Resource string `json:"resource" enum:"gpu_cores,gpu_memory_mib,cpu_milli,memory_mib,storage_mib"`
	Before   int64  `json:"before" doc:"sum of the members' limits now"`
	After    int64  `json:"after" doc:"their sum with the change"`
	Quota    int64  `json:"quota"`
	Left     int64  `json:"remaining" doc:"quota less after; negative when the quota would be exceeded"`
	Over     bool   `json:"over" doc:"it is why the change would be refused"`
}

// Holder is a member that holds more than a new peak would allow.
type Holder struct {
	MemberID int64          `json:"member_id"`
	Name     string         `json:"name"`
	Excess   []HolderExcess `json:"excess"`
}

// HolderExcess is one resource of which more is held.
type HolderExcess struct {
	Resource string `json:"resource"`
	InUse    int64  `json:"in_use"`
	Limit    int64  `json:"limit"`
}

func previewOf(p projects.Preview) Preview {
	v := Preview{Fits: p.Refused == nil, Members: p.Members, Resources: shown(p.Rows, func(r projects.PreviewRow) PreviewRow {
		return PreviewRow{r.Name, r.Before, r.Value, r.Quota, r.Remaining(), r.Over}
	}), Holders: shown(p.Holders, func(h projects.Holder) Holder {
		return Holder{h.MemberID, h.Name, shown(h.Excess, func(e models.Excess) HolderExcess { return HolderExcess{e.Name, e.Value, e.Limit} })}
	})}
	if p.Fits >= 0 {
		v.Headroom = &p.Fits
	}
	if p.Refused != nil {
		refusal := problemOf(p.Refused)
		v.Detail, v.Errors = refusal.Detail, refusal.Errors
	}
	return v
}

func (a rest) previewChange(ctx context.Context, in *CreateIn[projects.PreviewInput]) (*Response[Preview], error) {
	p, err := a.Projects.Preview(ctx, actorOf(ctx), in.ID, in.Body)
	return &Response[Preview]{previewOf(p)}, err
}
