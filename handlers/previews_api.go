package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) previewsOperations(s section) {
	register(a, s, route{http.MethodPost, "/projects/{id}/preview", 200, "preview-change",
		models.Say("Preview a change of a role, a member or the quota")}, a.previewChange)
}

// Preview is the effect of a change on a project's quota.
type Preview struct {
	Accepted  bool              `json:"accepted" doc:"the change would be accepted; for changes that require permission you lack, only the amounts are checked"`
	Resources []PreviewRow      `json:"resources"`
	Filled    []FilledAmount    `json:"filled,omitempty" doc:"quota or limit as it would be saved; absent for members"`
	Members   int64             `json:"members" doc:"number of members with a changed limit"`
	Headroom  *int64            `json:"additional_members,omitempty" doc:"number of members that can be added to the role afterwards; absent if unlimited"`
	OverLimit []MemberOverLimit `json:"users,omitempty" doc:"members whose use exceeds the new limit"`
	Beyond    []string          `json:"beyond,omitempty" doc:"resources allocated above the pool's capacity, which requires confirm and reason; for those who can read the capacity"`
	Detail    string            `json:"detail,omitempty" doc:"reason why the change would be refused"`
	Errors    []ProblemField    `json:"errors,omitempty" doc:"invalid fields and reasons"`
}

// FilledAmount is one amount of a quota or limit, and where it comes from.
type FilledAmount struct {
	Resource string       `json:"resource" enum:"gpu_cores,gpu_memory_mib,cpu_milli,memory_mib,storage_mib"`
	Amount   models.Bound `json:"amount"`
	Source   string       `json:"source" enum:"given,unallocated,gpu,capacity,machine,settings,quota,member,no_launch" doc:"given: as entered; otherwise how it was filled in"`
}

func filledOf(f projects.Filled) FilledAmount {
	return FilledAmount{f.Name, models.Bound(f.Value), string(f.Source)}
}

// PreviewRow is the effect on one resource.
type PreviewRow struct {
	Resource  string       `json:"resource" enum:"gpu_cores,gpu_memory_mib,cpu_milli,memory_mib,storage_mib"`
	Before    models.Bound `json:"before" doc:"sum of the members' limits before the change"`
	After     models.Bound `json:"after" doc:"sum of the members' limits after the change"`
	Quota     models.Bound `json:"quota"`
	Remaining models.Bound `json:"remaining" doc:"remaining quota after the change; negative if exceeded"`
	Over      bool         `json:"over" doc:"this resource is the reason for the refusal"`
}

// MemberOverLimit is a member whose use exceeds the new limit.
type MemberOverLimit struct {
	MemberID int64            `json:"member_id"`
	Name     string           `json:"name"`
	Excess   []ResourceExcess `json:"excess"`
}

// ResourceExcess is one exceeded resource.
type ResourceExcess struct {
	Resource string `json:"resource"`
	InUse    int64  `json:"in_use"`
	Limit    int64  `json:"limit"`
}

func previewOf(p projects.Preview) Preview {
	v := Preview{Accepted: p.Refused == nil, Members: p.Members, Filled: models.Map(p.Filled, filledOf),
		Beyond: models.Map(p.Beyond, models.Text.String),
		Resources: models.Map(p.Rows, func(r projects.PreviewRow) PreviewRow {
			return PreviewRow{r.Name, models.Bound(r.Before), models.Bound(r.Value), models.Bound(r.Quota), models.Bound(r.Remaining()), r.Over}
		}), OverLimit: models.Map(p.OverLimit, func(h projects.MemberOverLimit) MemberOverLimit {
			return MemberOverLimit{h.MemberID, h.Name, models.Map(h.Excess,
				func(e models.Excess) ResourceExcess { return ResourceExcess{e.Name, e.Value, e.Limit} })}
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
