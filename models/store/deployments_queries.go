package store

import (
	"gorm.io/gorm"

	"weir/models"
)

// CreateDeployment inserts d with its holder, its parts and the first line of its history.
func (q *Queries) CreateDeployment(d *models.Deployment, parts int, message models.Text) error {
	if err := q.createWithHolder(d, &d.HolderID, d.Claim()); err != nil {
		return err
	}
	list := make([]models.DeploymentPart, parts)
	for i := range list {
		list[i] = models.DeploymentPart{DeploymentID: d.ID, ProjectID: d.ProjectID, Number: int64(i), State: models.PartWaiting, Version: 1}
	}
	if err := q.db.Create(&list).Error; err != nil {
		return err
	}
	return q.AddDeploymentEvent(*d, message)
}

// TransitionDeployment writes d, whose State may have changed, if the row is still in the
// state from and of d.Version; otherwise it is a Conflict and nothing is written.
func (q *Queries) TransitionDeployment(d *models.Deployment, from models.DeploymentState, message models.Text) error {
	if d.State.Ended() {
		d.Secret = ""
	}
	db := q.db.Where("id = ? AND state = ?", d.ID, from)
	if err := replace(db, d, &d.Version, "deployment", append([]string{"id", "holder_id"}, claimColumns...)...); err != nil {
		return err
	}
	if err := q.saveClaim(d.Claim()); err != nil {
		return err
	}
	return q.AddDeploymentEvent(*d, message)
}

// TransitionPart writes p if the row is still in the state from and of p.Version. A message
// becomes a line of the history of its deployment d.
func (q *Queries) TransitionPart(d models.Deployment, p *models.DeploymentPart, from models.PartState, message models.Text) error {
	db := q.db.Where("id = ? AND state = ?", p.ID, from)
	if err := replace(db, p, &p.Version, "part", "id", "deployment_id", "number"); err != nil {
		return err
	}
	return q.AddDeploymentEvent(d, message)
}

// AddDeploymentEvent appends a line to the history of d, unless the message is empty.
func (q *Queries) AddDeploymentEvent(d models.Deployment, message models.Text) error {
	if message.Empty() {
		q.touchHolder(d.HolderView())
		return nil
	}
	return q.addEvent(d.HolderView(), message)
}

// DeploymentEvents lists a deployment's history, oldest first, at most the newest 200 lines.
func (q *Queries) DeploymentEvents(deployment int64) (events []models.DeploymentEvent, err error) {
	newest := q.db.Model(&models.DeploymentEvent{}).Where("deployment_id = ?", deployment).Order("id DESC").Limit(200)
	return events, q.db.Table("(?) AS e", newest).Order("id").Find(&events).Error
}

// DeploymentParts lists the parts of a deployment in their order.
func (q *Queries) DeploymentParts(deployment int64) (list []models.DeploymentPart, err error) {
	return list, q.db.Where("deployment_id = ?", deployment).Order("number").Find(&list).Error
}

// PartDevices names the GPUs of a deployment's holder, as parts have them.
func (q *Queries) PartDevices(holder int64) (names []string, err error) {
	return names, q.db.Raw(`SELECT p.name || ' #' || v.number FROM shares s JOIN devices v ON v.id = s.device_id
		JOIN providers p ON p.id = v.provider_id WHERE s.holder_id = ? AND s.until_at IS NULL ORDER BY v.number, s.id`, holder).Scan(&names).Error
}

// PartsInUse lists the parts of all deployments that have not ended.
func (q *Queries) PartsInUse() (list []models.DeploymentPart, err error) {
	live := q.db.Model(&models.Deployment{}).Select("id").Where("state IN ?", models.LiveDeployments)
	return list, q.db.Where("deployment_id IN (?)", live).Order("id").Find(&list).Error
}

// Deployment finds a deployment of a project in scope.
func (q *Queries) Deployment(scope Scope, id int64) (d models.DeploymentView, err error) {
	return d, found(q.deploymentViews(scope).Where("deployments.id = ?", id).Take(&d).Error, "deployment")
}

// LockDeployment finds a deployment and locks it against changes until the transaction ends.
func (q *Queries) LockDeployment(id int64) (d models.Deployment, err error) {
	return d, found(withClaims(q.locking("NO KEY UPDATE"), "deployments").Take(&d, id).Error, "deployment")
}

// DeploymentOf finds the deployment of a holder.
func (q *Queries) DeploymentOf(holder int64) (d models.Deployment, err error) {
	return d, found(withClaims(q.db, "deployments").Where("holder_id = ?", holder).Take(&d).Error, "deployment")
}

// DeploymentsIn lists all deployments in any of the states, oldest first.
func (q *Queries) DeploymentsIn(states ...models.DeploymentState) (list []models.Deployment, err error) {
	return list, withClaims(q.db, "deployments").Where("state IN ?", states).Order("id").Find(&list).Error
}

// DeploymentSeries lists the deployments with an address, in any of the states, newest first.
func (q *Queries) DeploymentSeries(first int64, states ...models.DeploymentState) (list []models.Deployment, err error) {
	return list, withClaims(q.db, "deployments").Where("(deployments.id = ? OR first_id = ?) AND state IN ?", first, first, states).
		Order("id DESC").Find(&list).Error
}

// LostGPU is why a deployment cannot use its GPUs.
type LostGPU struct {
	DeploymentID int64
	Machine      string
	Missing      bool // or broken is only the GPU, of a machine that responds
}

// Reason says it within a sentence.
func (g LostGPU) Reason() models.Text {
	if g.Missing {
		return models.Say("a GPU of the machine %s is missing or has an error", g.Machine)
	}
	return models.Say("the machine %s is lost", g.Machine)
}

// LostGPUs finds the deployments that serve, or are loaded, with a share of a GPU that is missing or broken, or
// whose machine is lost; for each deployment, one on a lost machine comes first.
func (q *Queries) LostGPUs() (list []LostGPU, err error) {
	return list, q.db.Raw(`SELECT d.id AS deployment_id, MIN(p.name) AS machine, p.state <> 'lost' AS missing
		FROM deployments d JOIN shares s ON s.holder_id = d.holder_id AND s.until_at IS NULL
			JOIN devices v ON v.id = s.device_id JOIN providers p ON p.id = v.provider_id
		WHERE d.state IN ('deploying', 'serving') AND (p.state = 'lost' OR NOT v.present OR v.trouble <> '')
		GROUP BY d.id, p.state ORDER BY d.id, missing`).Scan(&list).Error
}

// CountLiveDeployments counts the deployments of a member that have not ended, without one.
func (q *Queries) CountLiveDeployments(member, without int64) (n int64, err error) {
	return n, q.db.Model(&models.Deployment{}).Where("member_id = ? AND id <> ?", member, without).
		Where("state IN ?", models.LiveDeployments).Count(&n).Error
}

// Deployments lists deployments of projects in scope, newest first.
func (q *Queries) Deployments(scope Scope, f DeploymentFilter, page Page) (list []models.DeploymentView, err error) {
	return list, f.newest(q.deploymentViews(scope), "deployments", page).Find(&list).Error
}

func (q *Queries) deploymentViews(scope Scope) *gorm.DB { return q.ownedViews(scope, "deployments") }
