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

func (a rest) usageOperations(s section) {
	register(a, s, route{http.MethodGet, "/usage", 200, "list-project-usage",
		models.Say("List the usage of all projects; requires platform administrator")}, a.listProjectUsage)
	register(a, s, route{http.MethodGet, "/projects/{id}/usage", 200, "get-project-usage",
		models.Say("Get a project's usage and allocations, over time and by role")}, a.getUsage)
	register(a, s, route{http.MethodGet, "/projects/{id}/usage/people", 200, "list-member-usage",
		models.Say("List a project's usage by member; without permission to manage members, only your own")}, a.listUsage)
	register(a, s, route{http.MethodGet, "/projects/{id}/usage.csv", 200, "download-member-usage",
		models.Say("Export a project's usage by member as CSV")}, a.downloadUsage)
	describeDownload(s, "/projects/{id}/usage.csv", "text/csv")
}

// AllUsageQuery selects the usage of a page of all projects.
type AllUsageQuery struct {
	Paging
	projects.UsageQuery
}

// UsageOf selects the usage of one project.
type UsageOf struct {
	ByID
	projects.UsageQuery
}

// UsagePageOf selects a page of the usage of a project's members.
type UsagePageOf struct {
	UsageOf
	Paging
}

// AllUsage is the usage of all projects over a span of time.
type AllUsage struct {
	From      time.Time        `json:"from"`
	Until     time.Time        `json:"until" doc:"end of the span"`
	Used      models.Usage     `json:"used" doc:"usage of all projects"`
	Steps     []UsageStep      `json:"steps" doc:"usage of all projects in intervals of equal length, oldest first"`
	Simulated bool             `json:"simulated" doc:"includes simulated GPUs"`
	Capacity  models.Resources `json:"capacity" doc:"present capacity of the pool; 0 if it is not known"`
	List[UsageOfProject]
}

// UsageOfProject is the usage of one project among all.
type UsageOfProject struct {
	ProjectID int64              `json:"project_id"`
	Project   string             `json:"project"`
	Quota     models.Resources   `json:"quota" doc:"current quota"`
	Used      models.Usage       `json:"used" doc:"average since the creation of the project, if that lies in the span"`
	OfQuota   projects.Fractions `json:"quota_fraction" doc:"average in use as a fraction of the quota"`
	OfTotal   projects.Fractions `json:"total_fraction" doc:"part of the usage of all projects in the span"`
}

// ProjectUsage is a project's resources over a span of time.
type ProjectUsage struct {
	From      time.Time          `json:"from"`
	Until     time.Time          `json:"until" doc:"end of the span"`
	Used      models.Usage       `json:"used" doc:"total usage"`
	OfQuota   projects.Fractions `json:"quota_fraction" doc:"average in use as a fraction of the quota"`
	Left      models.Usage       `json:"former_members" doc:"usage by former members"`
	Allocated models.Resources   `json:"allocated" doc:"current sum of the members' limits"`
	Quota     models.Resources   `json:"quota" doc:"current quota"`
	Simulated bool               `json:"simulated" doc:"includes simulated GPUs"`
	Steps     []UsageStep        `json:"steps" doc:"intervals of equal length, oldest first"`
	Roles     []UsageOfRole      `json:"roles"`
}

// UsageStep is one step of a span.
type UsageStep struct {
	From      time.Time         `json:"from"`
	InUse     models.Resources  `json:"in_use" doc:"average resources in use; excludes storage"`
	Allocated *models.Resources `json:"allocated,omitempty" doc:"value at the end of the interval; absent if not recorded"`
	Quota     *models.Resources `json:"quota,omitempty" doc:"value at the end of the interval; absent if not recorded"`
}

// UsageOfRole is the usage of a role's members.
type UsageOfRole struct {
	RoleID    int64              `json:"role_id"`
	Role      string             `json:"role"`
	Members   int64              `json:"members"`
	Limit     models.Resources   `json:"limit"`
	Allocated models.Resources   `json:"allocated" doc:"limit multiplied by the number of members"`
	InUse     models.Resources   `json:"in_use" doc:"resources in use"`
	Used      models.Usage       `json:"used"`
	OfTotal   projects.Fractions `json:"total_fraction" doc:"average in use as a fraction of the usage of the project"`
}

// UsageOfMember is the usage of a member.
type UsageOfMember struct {
	MemberID int64              `json:"member_id"`
	UserID   int64              `json:"user_id"`
	Name     string             `json:"name"`
	Email    string             `json:"email"`
	Role     string             `json:"role"`
	Limit    models.Resources   `json:"limit"`
	InUse    models.Resources   `json:"in_use" doc:"resources in use"`
	Used     models.Usage       `json:"used"`
	OfTotal  projects.Fractions `json:"total_fraction" doc:"average in use as a fraction of the usage of the project"`
	// Simulated GPUs are never passed off as real ones.
	Simulated bool `json:"simulated" doc:"includes simulated GPUs"`
}

func usageOf(u projects.ProjectUsage) ProjectUsage {
	return ProjectUsage{From: u.From, Until: u.Until, Used: u.Used, OfQuota: u.OfQuota, Left: u.Left, Allocated: u.Project.Allocated,
		Quota: u.Project.Quota, Simulated: u.Simulated,
		Steps: models.Map(u.Steps, func(s projects.UsageStep) UsageStep { return UsageStep(s) }),
		Roles: models.Map(u.Roles, func(r projects.RoleUsage) UsageOfRole {
			return UsageOfRole{RoleID: r.ID, Role: r.Name, Members: r.Members, Limit: r.Limit, Allocated: r.Allocated, InUse: r.InUse, Used: r.Used,
				OfTotal: r.OfTotal}
		})}
}

func usageOfMember(p projects.PersonUsage) UsageOfMember {
	return UsageOfMember{MemberID: p.ID, UserID: p.UserID, Name: p.UserName, Email: p.UserEmail, Role: p.RoleName, Limit: p.Limit,
		InUse: p.InUse, Used: p.Used, OfTotal: p.OfTotal, Simulated: p.Simulated}
}

func (a rest) listProjectUsage(ctx context.Context, in *AllUsageQuery) (*Response[AllUsage], error) {
	page, err := in.page()
	if err != nil {
		return nil, err
	}
	u, err := a.Projects.AllUsage(ctx, actorOf(ctx), in.UsageQuery, page)
	if err != nil {
		return nil, err
	}
	v := AllUsage{From: u.From, Until: u.Until, Used: u.Used, Simulated: u.Simulated, Capacity: u.Capacity,
		Steps: models.Map(u.Steps, func(s projects.UsageStep) UsageStep { return UsageStep(s) })}
	v.Items = models.Map(u.Projects, func(p projects.UsageOfProject) UsageOfProject {
		return UsageOfProject{p.Project.ID, p.Project.Name, p.Project.Quota, p.Used, p.OfQuota, p.OfTotal}
	})
	if u.Next > 0 {
		v.NextCursor = strconv.FormatInt(u.Next, 10)
	}
	return &Response[AllUsage]{v}, nil
}

func (a rest) getUsage(ctx context.Context, in *UsageOf) (*Response[ProjectUsage], error) {
	u, err := a.Projects.Usage(ctx, actorOf(ctx), in.ID, in.UsageQuery)
	return &Response[ProjectUsage]{usageOf(u)}, err
}

func (a rest) listUsage(ctx context.Context, in *UsagePageOf) (*Response[List[UsageOfMember]], error) {
	return listed(in.Paging, func(p projects.PersonUsage) int64 { return p.ID }, func(page store.Page) ([]projects.PersonUsage, error) {
		return a.Projects.UsageOfPeople(ctx, actorOf(ctx), in.ID, in.UsageQuery, page)
	}, usageOfMember)
}

var usageColumns = []string{"name", "email", "role", "limit_gpu_cores", "gpu_cores_in_use", "average_gpu_cores", "average_gpu_memory_mib",
	"average_cpu_milli", "average_memory_mib", "gpu_core_hours", "cpu_hours", "simulated"}

func usageCells(p projects.PersonUsage) []string {
	cells := []string{p.UserName, p.UserEmail, p.RoleName}
	for _, n := range []int64{p.Limit.GPUCores, p.InUse.GPUCores, p.Used.Average.GPUCores, p.Used.Average.GPUMemoryMiB,
		p.Used.Average.CPUMilli,
		p.Used.Average.MemoryMiB} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	for _, hours := range []float64{p.Used.GPUCoreHours, p.Used.CPUHours} {
		cells = append(cells, strconv.FormatFloat(hours, 'f', 2, 64))
	}
	return append(cells, strconv.FormatBool(p.Simulated))
}

func (a rest) downloadUsage(ctx context.Context, in *UsageOf) (*huma.StreamResponse, error) {
	in.UsageQuery = in.UsageQuery.Fixed(a.Store.Now())
	return downloaded(a, ctx, "weir-usage.csv", usageColumns, usageCells, byID(func(p projects.PersonUsage) int64 { return p.ID }),
		func(ctx context.Context, page store.Page) ([]projects.PersonUsage, error) {
			return a.Projects.UsageOfPeople(ctx, actorOf(ctx), in.ID, in.UsageQuery, page)
		})
}
