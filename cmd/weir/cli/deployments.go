package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/workspaces"
)

// deploymentPoll is the time between two looks at a deployment that is awaited.
const deploymentPoll = time.Second

func newDeployCommand() *cobra.Command {
	var in workspaces.DeployInput
	var detach bool
	cmd := remoteCommand("deploy PATH", "Serve a model of the shared directories on GPUs, and wait until it serves", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			if err := s.projectOf(&in.ProjectID, in.ReservationID); err != nil {
				return err
			}
			if in.ProjectID == 0 {
				return config.Usagef("no project: set --project or --reservation")
			}
			in.Path = models.FilePath(args[0])
			res, err := s.once("/deployments", in)
			if err != nil {
				return err
			}
			var d handlers.Deployment
			if err := decode(s.client, res.body, &d); err != nil {
				return err
			}
			if detach {
				return s.show(res.body, func(t *table) { t.line("%d", d.ID) })
			}
			return s.awaitDeployment(d)
		})
	f := cmd.Flags()
	f.Int64Var(&in.ProjectID, "project", 0, "project `ID`")
	f.StringVar(&in.Name, "name", "", "`NAME` of the deployment; default: that of the directory")
	f.Int64Var(&in.Parts, "parts", 0, "`NUMBER` of parts, each on a GPU of its own; default: as few as possible")
	f.Int64Var(&in.Context, "context", 0, "maximum of `TOKENS` of a request and its completion")
	f.Int64Var(&in.Batch, "batch", 0, "`NUMBER` of requests that are computed at once")
	f.Int64Var(&in.Cores, "cores", 0, "GPU `CORES` of each part; default: 100, a whole GPU, or those of the reservation")
	f.Int64Var(&in.ReservationID, "reservation", 0, "`ID` of your active reservation in which the model is deployed; its project is the default")
	f.Int64Var(&in.EnvironmentID, "environment", 0, "environment `ID`, with PyTorch or NumPy; default: the first that is suitable")
	f.StringVar(&in.ServiceType, "service-type", "", "service `TYPE` whose split is used; default: by the architecture")
	f.Int64Var(&in.IdleMinutes, "idle-minutes", 0,
		"`MINUTES` without requests after which its GPUs are released, until the next request; default: never")
	f.BoolVar(&in.ManualUpdates, "manual-updates", false, "deploy files that change on request only; see “weir deployments update”")
	f.StringVar((*string)(&in.UpdateStrategy), "update-strategy", "",
		"`STRATEGY` of updates: rolling, beside the deployment, or recreate, which stops it first; default: rolling")
	f.BoolVar(&detach, "detach", false, "print the ID of the deployment and do not wait for it")
	return cmd
}

// awaitDeployment shows a deployment once it serves; the error says why it does not. A
// deployment goes on when this command is interrupted.
func (s *session) awaitDeployment(d handlers.Deployment) error {
	for d.State == models.DeploymentDeploying {
		select {
		case <-s.Done():
			return fmt.Errorf("deployment %d goes on; to stop it: weir deployments stop %d", d.ID, d.ID)
		case <-time.After(deploymentPoll):
		}
		err := s.patiently(s, func() (err error) {
			d, _, err = fetch[handlers.Deployment](s, s.client, deploymentPath(d.ID))
			return err
		})
		if err != nil {
			return err
		}
	}
	if d.State != models.DeploymentServing {
		return fmt.Errorf("deployment %d is %s: %s", d.ID, d.State, clean(d.Reason))
	}
	return send(s, http.MethodGet, deploymentPath(d.ID), nil, "", deploymentTables)
}

func newDeploymentsCommand() *cobra.Command {
	cmd := listCommand("deployments", "live", deploymentsTable)
	cmd.AddCommand(
		deploymentCommand("show", "Show a deployment with its parts", http.MethodGet, ""),
		newDeploymentMetricsCommand(),
		newUpdateCommand(),
		deploymentCommand("stop", "Stop a deployment and release its shares", http.MethodPost, "/stop"))
	return cmd
}

func newUpdateCommand() *cobra.Command {
	var strategy string
	cmd := remoteCommand("update DEPLOYMENT", "Deploy the changed files of a model in place of a deployment", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			path, err := deploymentArgument(args[0])
			if err != nil {
				return err
			}
			path += "/update"
			if strategy != "" {
				path += "?" + url.Values{"update_strategy": {strategy}}.Encode()
			}
			return send(s, http.MethodPost, path, nil, "", deploymentTables)
		})
	cmd.Flags().StringVar(&strategy, "update-strategy", "", "`STRATEGY` of this update, rolling or recreate; default: that of the deployment")
	return cmd
}

func newDeploymentMetricsCommand() *cobra.Command {
	var span string
	cmd := remoteCommand("metrics DEPLOYMENT", "Show the metrics of the requests to a deployment", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			path, err := deploymentArgument(args[0])
			if err != nil {
				return err
			}
			return send(s, http.MethodGet, path+"/metrics?"+url.Values{"span": {span}}.Encode(), nil, "", deploymentMetricsTables)
		})
	cmd.Flags().StringVar(&span, "span", "hour", "the last `SPAN`: hour, day, week, month, or months, which are 90 days")
	return cmd
}

// deploymentMetricsTables are the metrics of a span, and of each of its steps with requests.
func deploymentMetricsTables(t *table, m handlers.DeploymentMetrics) {
	head := []any{"FROM", "SUCCEEDED", "FAILED", "REJECTED", "P50", "P95", "P99", "FIRST TOKEN P50", "INPUT TOKENS", "OUTPUTS", "BUSY"}
	row := func(from time.Time, m handlers.RequestMetrics) {
		d, first := quantiles(m.Duration), quantiles(m.FirstToken)
		t.row(moment(from), m.Succeeded, m.Failed, m.Rejected, d[0], d[1], d[2], first[0], m.InputTokens, m.Outputs, percent(m.Busy))
	}
	t.section(head...)
	row(m.From, m.Total)
	t.section(head...)
	for _, step := range m.Steps {
		if step.Succeeded+step.Failed+step.Rejected > 0 {
			row(step.From, step.RequestMetrics)
		}
	}
	t.section("PART", "BUSY")
	for _, p := range m.Parts {
		t.row(p.Number, percent(p.Busy))
	}
}

func percent(fraction *float64) string {
	if fraction == nil {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100**fraction)
}

// quantiles are the median and what 95% and 99% do not exceed; empty if there are no durations.
func quantiles(d *handlers.Durations) (texts [3]string) {
	if d != nil {
		for i, seconds := range []float64{d.Median, d.P95, d.P99} {
			texts[i] = time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
		}
	}
	return texts
}

// deploymentArgument is the path of the deployment that an argument names.
func deploymentArgument(arg string) (string, error) {
	id, err := parseID(arg, "deployment")
	return deploymentPath(id), err
}

// deploymentCommand is a command that sends one request about a deployment and shows it.
func deploymentCommand(name, short, method, path string) *cobra.Command {
	return remoteCommand(name+" DEPLOYMENT", short, cobra.ExactArgs(1), func(s *session, args []string) error {
		at, err := deploymentArgument(args[0])
		if err != nil {
			return err
		}
		return send(s, method, at+path, nil, "", deploymentTables)
	})
}

func deploymentsTable(t *table, list []handlers.Deployment) {
	t.section("ID", "NAME", "STATE", "PARTS", "GPU MEMORY", "PROJECT", "USER", "REQUESTED", "REASON")
	for _, d := range list {
		t.row(d.ID, d.Name, d.State, len(d.Parts), models.FormatBytes(d.GPUMemoryBytes), d.Project, d.User, moment(d.RequestedAt), d.Reason)
	}
}

// deploymentTables are a deployment and its parts.
func deploymentTables(t *table, d handlers.Deployment) {
	deploymentsTable(t, []handlers.Deployment{d})
	t.section("PART", "STATE", "LOADED", "FIRST", "LAST", "MEMORY", "USED", "DEVICE", "LIBRARY", "ON", "RESTARTS")
	for _, p := range d.Parts {
		t.row(p.Number, p.State, fmt.Sprintf("%d%%", p.Progress), p.First, p.Last, models.FormatBytes(p.MemoryBytes), maxMemory(p), p.Device,
			p.Library, p.DeviceType, p.Restarts)
	}
	if len(d.PlanReasons) > 0 {
		t.section("PLAN")
	}
	for _, reason := range d.PlanReasons {
		t.row(reason)
	}
}

func deploymentPath(id int64) string { return fmt.Sprintf("/deployments/%d", id) }

// maxMemory is empty if it is not known.
func maxMemory(p handlers.DeploymentPart) string {
	if p.MaxMemory == 0 {
		return ""
	}
	return models.FormatBytes(p.MaxMemory)
}
