package web

import (
	"time"

	"weir/models"
)

// sampleRange is a span until now.
func sampleRange(span time.Duration) UsageRange {
	return UsageRange{Path: "/usage", From: ago(span), Until: now, Now: now}
}

func usageSamples() []sample {
	rows := []ProjectUse{{ID: 1, Name: "Speech models", Quota: quota, Used: models.Usage{Average: inUse, GPUCoreHours: 21600}, OfQuota: new(0.254), OfTotal: new(1.0)}, {ID: 2, Name: "Vision"}}
	return []sample{
		{"usage", "/usage", &root, AllUsagePage(AllUsageView{UsageRange: sampleRange(720 * time.Hour), Steps: []UsageStep{{From: ago(720 * time.Hour), InUse: inUse}, {From: ago(24 * time.Hour)}}, Used: models.Usage{Average: inUse, GPUCoreHours: 21600}, Simulated: true, Capacity: quota, Rows: rows})},
		{"accounting", "/accounting", &root, AccountingPage(sampleAccounting())},
		{"accounting-none", "/accounting", &root, AccountingPage(AccountingView{UsageRange: sampleRange(720 * time.Hour), Group: "project"})},
		{"accounting-own", "/projects/1/accounting", &li, AccountingPage(AccountingView{UsageRange: sampleRange(168 * time.Hour), Project: sampleProject().Project, Group: "member", OwnOnly: true})},
		{"prices", "/prices", &root, PricesPage(PricesView{Now: now, Rows: []models.GPUPrice{{Model: "NVIDIA H200", Billing: models.BillingOnDemand, Micros: 12_000, Currency: "EUR", ValidFrom: ago(720 * time.Hour)},
			{Model: "NVIDIA H200", Billing: models.BillingOnDemand, Micros: 11_000, Currency: "EUR", ValidFrom: ago(time.Hour)}, {Model: "NVIDIA H200", Billing: models.BillingReserved, Micros: 8000, Currency: "EUR", ValidFrom: now.Add(time.Hour)}}})},
		{"prices-none", "/prices", &root, PricesPage(PricesView{Now: now})},
		{"price-new", "/prices/new", &root, PriceFormPage(PriceFormView{Models: []string{"NVIDIA H200"}})},
		{"price-none", "/prices/new", &root, PriceFormPage(PriceFormView{})},
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

// sampleAccounting is a month by holder, in part without a price and not measured.
func sampleAccounting() AccountingView {
	const hour = 3_600_000
	v := AccountingView{UsageRange: sampleRange(720 * time.Hour), Group: "holder", Currency: "EUR", Member: "Li Wei",
		Filter: AccountingFilter{UserID: 3, Model: "NVIDIA H100 80GB HBM3", Billing: models.BillingReserved},
		Total:  AccountingRow{CoreMS: 60 * hour, ReservedMS: 4 * hour, ReservedUnusedMS: 12 * hour, UnpricedMS: 20 * hour, Cost: 480_000, Simulated: true},
		Rows: []AccountingRow{{Key: 1, Name: "run", CoreMS: 20 * hour, UnpricedMS: 20 * hour}, {Key: 2, Name: "workspace", CoreMS: 40 * hour, ReservedMS: 4 * hour, Cost: 480_000,
			MeasuredMS: 30 * hour, UsedMS: 12 * hour, Simulated: true}}}
	for i := range 30 {
		v.Steps = append(v.Steps, AccountingStep{v.From.Add(time.Duration(i) * 24 * time.Hour), int64(i%5) * hour})
	}
	return v
}
