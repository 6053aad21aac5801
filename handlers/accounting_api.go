package handlers

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
)

func (a rest) accountingOperations(s section) {
	register(a, s, route{http.MethodGet, "/accounting", 200, "get-accounting",
		models.Say("Get the GPU core hours of all projects and their cost; requires platform administrator")}, a.getAccounting)
	register(a, s, route{http.MethodGet, "/accounting.csv", 200, "download-accounting",
		models.Say("Export the GPU core hours of all projects as CSV; requires platform administrator")}, a.downloadAccounting)
	register(a, s, route{http.MethodGet, "/projects/{id}/accounting", 200, "get-project-accounting",
		models.Say("Get a project's GPU core hours and their cost; without permission to manage members, only your own")},
		a.getProjectAccounting)
	register(a, s, route{http.MethodGet, "/projects/{id}/accounting.csv", 200, "download-project-accounting",
		models.Say("Export a project's GPU core hours as CSV")}, a.downloadProjectAccounting)
	describeDownload(s, "/accounting.csv", "text/csv")
	describeDownload(s, "/projects/{id}/accounting.csv", "text/csv")
}

func (a rest) pricesOperations(s section) {
	register(a, s, route{http.MethodGet, "/prices", 200, "list-prices",
		models.Say("List the prices of GPU core hours; requires platform administrator")}, a.listPrices)
	register(a, s, route{http.MethodPost, "/prices", 200, "set-price",
		models.Say("Set the price of a GPU core hour from an instant on; requires platform administrator")}, a.setPrice)
}

// AllAccountingQuery selects the accounting of all projects.
type AllAccountingQuery struct {
	Paging
	projects.AccountingQuery
}

// AccountingOf selects the accounting of one project.
type AccountingOf struct {
	ByID
	Paging
	projects.AccountingQuery
}

// AccountingFileOf selects the accounting of one project, without pages.
type AccountingFileOf struct {
	ByID
	projects.AccountingQuery
}

// Accounting is what shares of GPUs took over a span of time, by group.
type Accounting struct {
	From     time.Time        `json:"from"`
	Until    time.Time        `json:"until" doc:"end of the span"`
	Group    string           `json:"group" enum:"project,member,model,holder,billing"`
	OwnOnly  bool             `json:"own_only" doc:"only your own shares are counted"`
	Currency string           `json:"currency" doc:"currency of the costs; empty if no prices are set"`
	Total    AccountedGroup   `json:"total"`
	Steps    []AccountingStep `json:"steps" doc:"intervals of equal length, oldest first"`
	List[AccountedGroup]
}

// AccountingStep is one step of a span.
type AccountingStep struct {
	From   time.Time `json:"from"`
	CoreMS int64     `json:"gpu_core_milliseconds"`
}

// AccountedGroup is the sum of a group of shares.
type AccountedGroup struct {
	Key        int64  `json:"key" doc:"ID of the project or user; otherwise the position of the group; 0 in the total"`
	Name       string `json:"name" doc:"name of the project, user or model, kind of holder or billing model; empty in the total"`
	CoreMS     int64  `json:"gpu_core_milliseconds" doc:"allocated GPU cores multiplied by milliseconds; 360000000 are a whole GPU hour"`
	ReservedMS int64  `json:"reserved_gpu_core_milliseconds" doc:"the part that was taken in reservations"`
	// What was reserved besides: waste.
	ReservedUnusedMS int64 `json:"reserved_unused_gpu_core_milliseconds" doc:"what was reserved besides and nothing used; by holder, only in the total"`
	UnpricedMS       int64 `json:"unpriced_gpu_core_milliseconds" doc:"the part for which no price was in force"`
	Cost             int64 `json:"cost_micros" doc:"cost of the priced part, in millionths of the currency, rounded once"`
	MeasuredMS       int64 `json:"measured_gpu_core_milliseconds" doc:"the part whose use was measured: whole hours alone on a GPU"`
	UsedMS           int64 `json:"used_gpu_core_milliseconds" doc:"GPU cores utilized in the measured part, multiplied by milliseconds"`
	// Simulated GPUs are never passed off as real ones.
	Simulated bool `json:"simulated" doc:"includes simulated GPUs"`
}

func accountedGroup(r projects.AccountingRow) AccountedGroup {
	return AccountedGroup{r.Key, r.Name, r.CoreMS, r.ReservedMS, r.ReservedUnusedMS, r.UnpricedMS, r.Cost, r.MeasuredMS, r.UsedMS, r.Simulated}
}

// accounting responds with one page of groups.
func (a rest) accounting(ctx context.Context, project int64, p Paging, in projects.AccountingQuery) (*Response[Accounting], error) {
	page, err := p.page()
	if err != nil {
		return nil, err
	}
	all, err := a.Projects.Accounting(ctx, actorOf(ctx), project, in, page)
	if err != nil {
		return nil, err
	}
	list := List[AccountedGroup]{Items: models.Map(all.Rows, accountedGroup)}
	if all.Next > 0 {
		list.NextCursor = strconv.FormatInt(all.Next, 10)
	}
	steps := models.Map(all.Steps, func(s projects.AccountingStep) AccountingStep { return AccountingStep(s) })
	return &Response[Accounting]{Accounting{all.From, all.Until, all.Group, all.OwnOnly, all.Currency,
		accountedGroup(all.Total), steps, list}}, nil
}

func (a rest) getAccounting(ctx context.Context, in *AllAccountingQuery) (*Response[Accounting], error) {
	return a.accounting(ctx, 0, in.Paging, in.AccountingQuery)
}

func (a rest) getProjectAccounting(ctx context.Context, in *AccountingOf) (*Response[Accounting], error) {
	return a.accounting(ctx, in.ID, in.Paging, in.AccountingQuery)
}

var accountingColumns = []string{"key", "name", "gpu_core_milliseconds", "gpu_core_hours", "reserved_gpu_core_milliseconds",
	"unpriced_gpu_core_milliseconds", "cost_micros", "currency", "measured_gpu_core_milliseconds", "used_gpu_core_milliseconds", "simulated",
	"reserved_unused_gpu_core_milliseconds"}

// accountingFile responds with the groups as a CSV file.
func (a rest) accountingFile(ctx context.Context, project int64, in projects.AccountingQuery) (*huma.StreamResponse, error) {
	currency := ""
	in.UsageQuery = in.UsageQuery.Fixed(a.Store.Now())
	return downloaded(a, ctx, "weir-accounting.csv", accountingColumns, func(r projects.AccountingRow) []string {
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		return []string{n(r.Key), r.Name, n(r.CoreMS), models.CoreHours(r.CoreMS), n(r.ReservedMS), n(r.UnpricedMS), n(r.Cost), currency,
			n(r.MeasuredMS), n(r.UsedMS), strconv.FormatBool(r.Simulated), n(r.ReservedUnusedMS)}
	}, byID(func(r projects.AccountingRow) int64 { return r.Key }), func(ctx context.Context, page store.Page) (
		[]projects.AccountingRow, error) {
		one, err := a.Projects.Accounting(ctx, actorOf(ctx), project, in, page)
		currency = one.Currency
		return one.Rows, err
	})
}

func (a rest) downloadAccounting(ctx context.Context, in *projects.AccountingQuery) (*huma.StreamResponse, error) {
	return a.accountingFile(ctx, 0, *in)
}

func (a rest) downloadProjectAccounting(ctx context.Context, in *AccountingFileOf) (*huma.StreamResponse, error) {
	return a.accountingFile(ctx, in.ID, in.AccountingQuery)
}

func (a rest) listPrices(ctx context.Context, in *Paging) (*Response[List[models.GPUPrice]], error) {
	all, err := a.Projects.Prices(ctx, actorOf(ctx))
	return listedAll(*in, func(p models.GPUPrice) int64 { return p.ID }, all, err, unchanged)
}

func (a rest) setPrice(ctx context.Context, in *Create[projects.PriceInput]) (*Response[models.GPUPrice], error) {
	p, err := a.Projects.SetPrice(ctx, actorOf(ctx), in.Body)
	return &Response[models.GPUPrice]{p}, err
}
