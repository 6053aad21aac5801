package broker

import (
	"math"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/pool/quota"
	"weir/pool/timeline"
)

// checkBounds checks grants beside what the member and the project have reserved, as
// assumed: the limit of the role and the quota at every moment, and the
// core-hours ahead.
func (s *Service) checkBounds(reserved []models.ReservedView, p models.Project, m store.LaunchMember, grants []models.ReservationGrant,
	as models.AssumedReservations) error {
	now := s.store.Now()
	var byProject, byMember, more timeline.Timeline
	coreHours := 0.0
	ahead := func(g models.ReservationGrant) float64 {
		return float64(g.Cores) * g.EndsAt.Sub(later(g.StartsAt, now)).Hours()
	}
	for _, r := range as.Among(reserved) {
		if r.ProjectID != p.ID { // of what is assumed
			continue
		}
		own := r.UserID == m.UserID
		if own {
			coreHours += ahead(r.ReservationGrant)
		}
		if !slices.ContainsFunc(grants, r.Overlaps) {
			continue
		}
		byProject.Add(spanOf(r.ReservationGrant), amountOf(r.ReservationGrant))
		if own {
			byMember.Add(spanOf(r.ReservationGrant), amountOf(r.ReservationGrant))
		}
	}
	for _, g := range grants {
		more.Add(spanOf(g), amountOf(g))
		coreHours += ahead(g)
	}
	var problems models.Problems
	for _, g := range grants { // whatever begins, begins with one of them
		all, own, asked := byProject.Max(spanOf(g)), byMember.Max(spanOf(g)), more.Max(spanOf(g))
		use := quota.Use{Quota: p.Quota, InUseByProject: resources(all), Limit: m.Limit, InUseByMember: resources(own)}
		for _, e := range use.ExceededBy(resources(asked)) {
			problems = append(problems, models.Field{Name: field(e.Name), Reason: excessText(e)})
		}
		if len(problems) > 0 {
			return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This exceeds the limit or quota at that time."), Fields: problems}
		}
	}
	if most := float64(m.Limit.GPUCores) * s.rules.Budget.Hours(); m.Limit.GPUCores != models.Unlimited && coreHours > most {
		return models.NoCapacity("duration_minutes", "%d GPU core-hours would be reserved ahead; your role allows %d",
			int64(math.Ceil(coreHours)), int64(most))
	}
	return nil
}

func resources(a timeline.Amount) models.Resources {
	return models.Resources{GPUCores: a.Cores, GPUMemoryMiB: a.MemoryMiB}
}

func field(resource string) string {
	if resource == "gpu_cores" {
		return "cores"
	}
	return resource
}

func excessText(e quota.Excess) models.Text {
	taken, requested, bound := models.Quantity(e.Name, e.Taken), models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Bound)
	if e.OfProject {
		return models.Say("%s: %s reserved by the project, %s requested, quota of the project %s", e.Label, taken, requested, bound)
	}
	return models.Say("%s: %s reserved, %s requested, limit of the role %s", e.Label, taken, requested, bound)
}
