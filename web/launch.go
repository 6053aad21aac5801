package web

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

// LaunchView is the launch form with its preview.
//
// The form's fields: project_id, environment_id, name, version_constraints, gpus, cores,
// gpu_memory_mib, gpu_model, cpu_milli, memory_mib, shm_mib, idle_minutes, gpu_idle_minutes, path, env,
// reservation_id and when_insufficient (refuse, fewer or wait).
type LaunchView struct {
	Form         Form
	Projects     []Option // those in which I may launch
	Project      string
	Role         string
	Model        string // path, for display; empty: none
	Needs        models.ModelNeeds
	GPUModels    []string // in the pool, for the choice
	Meters       []Meter  // LimitMeters with what is requested
	Environments []EnvironmentChoice
	Mismatches   []EnvironmentMismatch
	Target       []models.Parameter
	Defaults     map[string]string // by field, formatted
	Decision     Decision
	CanLaunch    bool
	// AutoEnvironment is set if the page has selected the environment, not the person.
	AutoEnvironment bool
}

// EnvironmentChoice is an environment that could be launched, best first.
type EnvironmentChoice struct {
	ID       int64
	Name     string
	Versions string // such as "Python 3.12 · torch 2.9.0"
	Matched  []models.Text
}

// EnvironmentMismatch is an environment that does not match, and why.
type EnvironmentMismatch struct {
	Name    string
	Reasons []models.Text
}

// Decision is what the pool would decide about this launch now.
type Decision struct {
	Outcome        string // models.Outcome…; empty while the form is incomplete
	RequestedCores int64  // Σ over GPUs
	FreeCores      int64  // of those, available now
	Explanation    models.Text
	Reasons        []models.Text // why not, or why not all
	Devices        []Device      // where it would go, with its share New
	Enforcement    string        // models.Enforced…
	Simulated      bool
	Fewer          *Fewer
	Wait           *Wait
}

// Fewer is the offer to start now with less.
type Fewer struct {
	Cores        int64 // Σ over GPUs
	GPUMemoryMiB int64 // Σ over GPUs
	Devices      []Device
}

// Wait is the offer to wait for all.
type Wait struct {
	Before int // requests that would be served before
	Starts Start
}

// Start is when something can probably start.
type Start struct {
	Text models.Text // such as "in about 14 minutes"
	At   time.Time   // zero if it is not known
}

// launchLabels are the inputs of the launch page that are called otherwise
// than elsewhere.
var launchLabels = map[string]string{"gpu_memory_mib": "launch.gpu_memory_mib"}

// modelURL is the address of the form without the model.
func (v LaunchView) modelURL() templ.SafeURL {
	return templ.SafeURL("/launch?project_id=" + v.Form.Value("project_id"))
}

// subtitle is the project and role of the launch.
func (v LaunchView) subtitle(ctx context.Context) string {
	switch {
	case v.Project == "":
		return ""
	case v.Role == "":
		return v.Project
	}
	return T(ctx, "%s · role %s", v.Project, v.Role)
}

// chosen reports whether the i-th environment is selected: the requested one, or else the
// best. Where the requested one is refused and not there, none is.
func (v LaunchView) chosen(i int) bool {
	if want := v.Form.Value("environment_id"); want != "" && want != "0" {
		return number(v.Environments[i].ID) == want
	}
	return i == 0
}

// withDefault sets the placeholder of an empty input to its default.
func (v LaunchView) withDefault(name string, spec field) field {
	if d, ok := v.Defaults[name]; ok && d != "" {
		spec.Placeholder = d
	}
	return spec
}

// whenInsufficient is the chosen way when not all is free; the first one offered
// unless another was chosen.
func (v LaunchView) whenInsufficient() string {
	d, chosen := v.Decision, v.Form.Value("when_insufficient")
	switch {
	case d.Wait != nil && (chosen == "wait" || d.Fewer == nil):
		return "wait"
	case d.Fewer != nil:
		return "fewer"
	}
	return "refuse"
}

// button is the label of the launch button.
func (v LaunchView) button(ctx context.Context) string {
	d := v.Decision
	if d.needsChoice() {
		switch v.whenInsufficient() {
		case "wait":
			return T(ctx, "Wait for %d GPU cores", d.RequestedCores)
		case "fewer":
			return T(ctx, "Start now with %d GPU cores", d.Fewer.Cores)
		}
	}
	switch {
	case d.Outcome == "", !v.CanLaunch && d.RequestedCores == 0 && v.Form.Value("gpus") != "0":
		return T(ctx, "Launch workspace")
	case d.RequestedCores > 0:
		return T(ctx, "Launch with %d GPU cores", d.RequestedCores)
	}
	return T(ctx, "Launch without a GPU")
}

// needsChoice reports whether the member has to choose.
func (d Decision) needsChoice() bool { return d.Fewer != nil || d.Wait != nil }

// headline is the decision in one sentence.
func (d Decision) headline(ctx context.Context) string {
	switch {
	case d.Outcome == "":
		return T(ctx, "Launch")
	case d.Outcome == models.OutcomeRefused && !d.needsChoice():
		return T(ctx, "Cannot launch this workspace")
	case d.Outcome == models.OutcomeGranted && d.RequestedCores == 0:
		return T(ctx, "Starts immediately, without a GPU")
	case d.Outcome == models.OutcomeGranted:
		return T(ctx, "All %d GPU cores are available now", d.RequestedCores)
	case d.FreeCores > 0:
		return T(ctx, "Only %d of %d GPU cores are available now", d.FreeCores, d.RequestedCores)
	}
	return T(ctx, "None of the %d GPU cores are available now", d.RequestedCores)
}

// queue formats the number of requests ahead.
func (w Wait) queue(ctx context.Context) string {
	switch w.Before {
	case 0:
		return T(ctx, "No requests ahead of you.")
	case 1:
		return T(ctx, "1 request ahead of you.")
	}
	return T(ctx, "%d requests ahead of you.", w.Before)
}

// requestMore is the address of the form that requests a larger limit, if the launch
// exceeds the own one.
func (v LaunchView) requestMore() string {
	project, err := strconv.ParseInt(v.Form.Value("project_id"), 10, 64)
	if err != nil && len(v.Projects) > 0 {
		project, err = strconv.ParseInt(v.Projects[0].Value, 10, 64)
	}
	if err != nil || !slices.ContainsFunc(v.Meters, Meter.Over) {
		return ""
	}
	return newRequestPath(models.RequestLimit, project)
}
