package web

import (
	"time"

	"weir/models"
)

// sampleRange is a span until now.
func sampleRange(span time.Duration) UsageRange {
	return UsageRange{Path: "/usage", From: ago(span), Until: now}
}

func usageSamples() []sample {
	rows := []ProjectUse{{ID: 1, Name: "Speech models", Quota: quota, Used: models.Usage{Average: inUse, GPUCoreHours: 21600}, OfQuota: new(0.254), OfTotal: new(1.0)}, {ID: 2, Name: "Vision"}}
	return []sample{
		{"usage", "/usage", &root, AllUsagePage(AllUsageView{UsageRange: sampleRange(720 * time.Hour), Used: models.Usage{Average: inUse, GPUCoreHours: 21600}, Simulated: true, Rows: rows})},
		{"usage-none", "/usage", &root, AllUsagePage(AllUsageView{UsageRange: sampleRange(720 * time.Hour)})},
	}
}

// sampleUsage is a month of a project that was recorded half of it.
func sampleUsage() UsageView {
	v := UsageView{Project: sampleProject().Project, UsageRange: sampleRange(720 * time.Hour), Allocated: limit.Times(3), SeesAll: true, Simulated: true,
		Used: models.Usage{Average: inUse, GPUCoreHours: 21600, CPUHours: 2880}, Left: models.Usage{GPUCoreHours: 120},
		Roles: []RoleUse{{Name: "algorithm engineer", Members: 3, Limit: limit, Allocated: limit.Times(3), InUse: inUse, Used: models.Usage{Average: inUse, GPUCoreHours: 21480}}},
		People: []PersonUse{{Name: "Li Wei", Email: li.Email, Role: "algorithm engineer", Me: true, Limit: limit, InUse: inUse, Used: models.Usage{Average: inUse, GPUCoreHours: 18200}},
			{Name: "Zhao Min", Email: "zhao@example.org", Role: "algorithm engineer", Limit: limit}}}
	for i := range 30 {
		s := UsageStep{From: v.From.Add(time.Duration(i) * 24 * time.Hour), InUse: models.Resources{GPUCores: int64(i * 7 % 160), GPUMemoryMiB: int64(i * 4000), CPUMilli: int64(i*700) % 9000, MemoryMiB: int64(i * 1500)}}
		if i > 14 {
			allocated, all := limit.Times(2), quota
			s.Allocated, s.Quota = &allocated, &all
		}
		v.Steps = append(v.Steps, s)
	}
	return v
}
