package web

import (
	"context"
	"strings"

	"weir/models"
)

// DeploymentRow is a deployment with its parts, and what the reader may do with it.
type DeploymentRow struct {
	models.DeploymentView
	Parts   []models.DeploymentPart
	CanStop bool
}

// DeploymentsView lists deployments.
type DeploymentsView struct {
	Rows  []DeploymentRow
	State string // live, ended, all
	Next  string
}

// DeploymentDetail is a deployment with its devices and its history.
type DeploymentDetail struct {
	DeploymentRow
	Devices     []Device // of the parts, in their order
	Events      []models.DeploymentEvent
	Reservation *models.ReservationGrant // that ends it; nil: none
	// CurrentID is the deployment that has taken its place; 0: none.
	CurrentID int64
	Metrics   models.DeploymentMetrics
}

// DeployForm asks for a model to serve. Its fields: project_id, path, name, parts, context,
// batch, cores, environment_id, reservation_id, service_type, idle_minutes, update_strategy and
// manual_updates.
type DeployForm struct {
	Form         Form
	Projects     []Option // in which the reader can deploy
	Environments []Option // that can run the parts
	ServiceTypes []Option
	Reservations []Option // the first is none
}

// deployLabels name the fields in the summary of errors.
var deployLabels = map[string]string{"path": "deploy.path", "name": "deploy.name", "parts": "deploy.parts", "context": "deploy.context",
	"batch": "deploy.batch", "cores": "deploy.cores", "environment_id": "deploy.environment_id", "idle_minutes": "deploy.idle_minutes"}

func deploymentPath(id int64) string { return "/deployments/" + number(id) }

// every is after how many seconds the page is fetched again: while it serves, for its metrics.
func (d DeploymentDetail) every() int {
	if d.State == models.DeploymentServing {
		return refreshSeconds
	}
	return 0
}

// ready is how many parts are loaded.
func (r DeploymentRow) ready() (n int64) {
	for _, p := range r.Parts {
		if p.State == models.PartReady {
			n++
		}
	}
	return n
}

// updates says what happens when the files of the model change.
func (r DeploymentRow) updates(ctx context.Context) string {
	switch {
	case r.ManualUpdates:
		return T(ctx, "are deployed on request only")
	case r.UpdateStrategy == models.UpdateRecreate:
		return T(ctx, "are deployed automatically, after a stop")
	default:
		return T(ctx, "are deployed automatically")
	}
}

func updateStrategies(ctx context.Context) []Option {
	return []Option{{Value: string(models.UpdateRolling), Label: T(ctx, "Rolling: beside the deployment")},
		{Value: string(models.UpdateRecreate), Label: T(ctx, "Recreate: after the deployment has stopped")}}
}

// idles says when a deployment without requests releases its GPUs.
func (r DeploymentRow) idles(ctx context.Context) string {
	if r.Request.IdleMinutes == 0 {
		return T(ctx, "never")
	}
	return T(ctx, "%d minutes without requests", r.Request.IdleMinutes)
}

// virtualMiB is the memory of the virtual GPU: the sum of the parts' shares.
func (r DeploymentRow) virtualMiB() int64 { return r.Demand.GPUs * r.Demand.GPUMemoryMiB }

// device is where a part is; empty when its share is released.
func (d DeploymentDetail) device(part int64) string {
	if part >= int64(len(d.Devices)) {
		return ""
	}
	at := d.Devices[part]
	return at.Provider + " · " + at.Label
}

// simulated reports whether a part is on a simulated device.
func (d DeploymentDetail) simulated(part int64) bool {
	return part < int64(len(d.Devices)) && d.Devices[part].Simulated
}

// partState is the state of a part, with its progress while it is loaded.
func partState(ctx context.Context, p models.DeploymentPart) string {
	if p.State == models.PartLoading {
		return T(ctx, "loading, %d%%", p.Progress)
	}
	return TT(ctx, p.State.Words())
}

// computesWith is the library of a part, and on what it computes.
func computesWith(p models.DeploymentPart) string {
	if p.DeviceType == "" {
		return p.Library
	}
	return p.Library + " · " + strings.ToUpper(p.DeviceType)
}

// ConfirmStopDeployment asks for confirmation before a deployment is stopped.
func ConfirmStopDeployment(d models.DeploymentView) ConfirmView {
	return ConfirmView{Title: models.Say("Stop deployment %s?", d.Name), Button: models.Say("Stop deployment"),
		Consequences: []models.Text{models.Say("It stops serving requests, and its GPUs are released. The files of the model are kept.")},
		Action:       deploymentPath(d.ID) + "/stop", Back: deploymentPath(d.ID)}
}
