package projects

import (
	"weir/models"
	"weir/models/store"
	"weir/pool/quota"
)

// CheckLimit refuses a role's limit above the project's quota.
func CheckLimit(limit, total models.Resources) error {
	var problems models.Problems
	for _, e := range limit.Exceeding(total) {
		problems.Add("limit."+e.Name, "%s requested; the project's quota is %s",
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return quotaError(problems)
}

// CheckRaised refuses a request that raises no amount of a quota or limit.
func CheckRaised(field string, requested, present models.Resources) error {
	if len(requested.Exceeding(present)) > 0 {
		return nil
	}
	return models.Invalid(field+".gpu_cores", "must exceed the current amount for at least one resource")
}

// AsRequested are the amounts of a decision on a request: what neither the request nor the decision
// changes, since both are those of the baseline, stays the present amount. A nil baseline is not known.
func AsRequested(decided, present models.Resources, requested models.ResourcesInput, baseline *models.Resources) models.Resources {
	if baseline == nil {
		return decided
	}
	asked := requested.Resources()
	of := func(decided, asked, was, now int64) int64 {
		if decided == was && asked == was {
			return now
		}
		return decided
	}
	return models.Resources{GPUCores: of(decided.GPUCores, asked.GPUCores, baseline.GPUCores, present.GPUCores),
		GPUMemoryMiB: of(decided.GPUMemoryMiB, asked.GPUMemoryMiB, baseline.GPUMemoryMiB, present.GPUMemoryMiB),
		CPUMilli:     of(decided.CPUMilli, asked.CPUMilli, baseline.CPUMilli, present.CPUMilli),
		MemoryMiB:    of(decided.MemoryMiB, asked.MemoryMiB, baseline.MemoryMiB, present.MemoryMiB),
		StorageMiB:   of(decided.StorageMiB, asked.StorageMiB, baseline.StorageMiB, present.StorageMiB)}
}

// CheckKept refuses amounts of a request below the present ones that were raised since it was
// submitted over those of the baseline. A nil baseline is not known.
func CheckKept(field string, requested, present models.Resources, baseline *models.Resources) error {
	if baseline == nil {
		return nil
	}
	var problems models.Problems
	was, now := baseline.Amounts(), present.Amounts()
	for i, a := range requested.Amounts() {
		if now[i].Value > max(was[i].Value, a.Value) {
			present := models.Quantity(a.Name, now[i].Value)
			problems.Add(field+"."+a.Name,
				"was raised from %s to %s after the request was submitted; approve at least %s, or refuse the request",
				models.Quantity(a.Name, was[i].Value), present, present)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &models.Error{Kind: models.KindConflict, Fields: problems,
		Message: models.Say("This would lower amounts that were raised after the request was submitted. No changes were made.")}
}

// quotaError is the error of exceeded fields; nil without any.
func quotaError(problems models.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This would exceed a quota or limit. No changes were made."),
		Fields: problems}
}

// checkQuota checks rules 1 and 2 for a new quota.
func checkQuota(q *store.Queries, p models.Project) error {
	allocated, err := q.AllocatedLimits(p.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range allocated.Exceeding(p.Quota) {
		problems.Add("quota."+e.Name, "%s is allocated to members by role limits; the quota cannot be lower",
			models.Quantity(e.Name, e.Value))
	}
	if len(problems) > 0 {
		return quotaError(problems)
	}
	inUse, err := q.InUseByProject(p.ID)
	if err != nil {
		return err
	}
	for _, e := range inUse.Exceeding(p.Quota) {
		problems.Add("quota."+e.Name, "%s is in use; the quota cannot be lower", models.Quantity(e.Name, e.Value))
	}
	return quotaError(problems)
}

// checkAllocated checks rule 1 for an additional allocation of a limit to each of n members.
func checkAllocated(q *store.Queries, p models.Project, limit models.Resources, n int64) error {
	allocated, err := q.AllocatedLimits(p.ID)
	if err != nil {
		return err
	}
	return checkMore(p, allocated, limit.Times(n), "role_id", n)
}

// checkMore is checkAllocated for what is allocated now. field is the input field of the limit or of
// the role.
func checkMore(p models.Project, allocated, more models.Resources, field string, n int64) error {
	var problems models.Problems
	for _, e := range (quota.Limits{Quota: p.Quota, Allocated: allocated}).ExceededBy(more) {
		name := field
		if field == "limit" {
			name = "limit." + e.Name
		}
		problems.Add(name, "%s: %s more requested for %d members; %s of the project's quota of %s remaining",
			e.Label, models.Quantity(e.Name, e.Requested), n, models.Quantity(e.Name, e.Remaining), models.Quantity(e.Name, e.Bound))
	}
	return quotaError(problems)
}

// checkUse checks rule 2 for the new role of a member.
func checkUse(q *store.Queries, m models.Member, limit models.Resources) error {
	inUse, err := q.InUseByMember(m.ProjectID, m.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range inUse.Exceeding(limit) {
		problems.Add("role_id", "%s: %s is in use; the role's limit is %s", e.Label,
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return quotaError(problems)
}

// MemberOverLimit is a member whose use exceeds a new limit.
type MemberOverLimit struct {
	MemberID int64
	Name     string
	Excess   []models.Excess
}
