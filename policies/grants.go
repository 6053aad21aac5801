package policies

import (
	"weir/models"
	"weir/models/store"
)

// CheckGrant refuses to give, change or take away permissions in a project that
// the actor does not have there. sets are these permissions, subject names what
// has them in the refusal, and field is the input field that selected them.
// Platform administrators and system actors have all permissions.
//
// It belongs into the transaction of the change, in which Write has locked the
// project, and reads the actor's permissions again; a preview, which changes nothing,
// goes by those that the actor has.
func (a *Access) CheckGrant(q *store.Queries, actor Actor, project int64, field string, subject models.Text,
	sets ...models.Permissions) error {
	have, err := a.currentPermissions(q, actor, project)
	if err != nil {
		return err
	}
	var lacks models.Permissions
	for _, set := range sets {
		lacks |= set.Without(have)
	}
	if lacks == 0 {
		return nil
	}
	e := models.Forbidden("%s has permissions that you do not have: %s. Contact a platform administrator or someone who has them.",
		subject, lacks.String())
	e.Fields = []models.Field{{Name: field, Reason: models.Say("has permissions that you do not have: %s", lacks.String())}}
	return e
}

// currentPermissions reads the actor's permissions in the project again.
func (a *Access) currentPermissions(q *store.Queries, actor Actor, project int64) (models.Permissions, error) {
	if actor.System != "" {
		return models.AllPermissions, nil
	}
	if !q.Writing() {
		return a.PermissionsIn(actor, project), nil
	}
	u, err := q.User(actor.User.ID)
	if err != nil || u.Disabled {
		return 0, unauthenticated(err)
	}
	now, err := actorOf(q, u)
	return a.PermissionsIn(now, project), err
}

// PermissionsIn is the set of the actor's permissions in a project: all for a platform
// administrator, otherwise those of the role.
func (a *Access) PermissionsIn(actor Actor, project int64) models.Permissions {
	if a.May(actor, project, ProjectWrite) {
		return models.AllPermissions
	}
	return actor.Grants[project].Permissions
}

// PlatformPermissions tells what the actor may do outside projects.
func (a *Accounts) PlatformPermissions(actor Actor) models.PlatformPermissions {
	may := func(right Right) bool { return a.access.May(actor, Platform, right) }
	return models.PlatformPermissions{CreateProjects: may(ProjectWrite), ReadAccounts: may(UserRead), EditAccounts: may(UserWrite),
		EditEnvironments: may(EnvironmentWrite), EditWebhooks: may(WebhookWrite),
		EditCapacity: may(CapacityWrite), EditCurators: may(CuratorWrite),
		ReadProviders: may(ProviderRead), EditProviders: may(ProviderWrite), EditDevices: may(DeviceWrite), Launch: actor.CanLaunchAnywhere()}
}
