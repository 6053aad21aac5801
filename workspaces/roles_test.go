package workspaces_test

import (
	"testing"

	"weir/models"
	"weir/pool/projects"
)

// Whose role permits no workspaces any more loses those that there are, with
// the reason; another role that permits them changes nothing.
func TestARoleThatPermitsNoWorkspaces(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		put := func(permission string, permissions ...string) {
			t.Helper()
			_, err := b.projects.UpdateRole(b.ctx, b.root, b.project.ID, b.role.ID,
				projects.RoleInput{Name: b.role.Name, Permission: permission, Permissions: permissions, Limit: b.role.Limit.Input()})
			if err != nil {
				t.Fatal(err)
			}
			b.Tick(b.ctx)
		}
		for i, without := range []func(){
			func() { put(models.PermissionViewer) },
			func() { put(models.PermissionCustom, "member:write", "workspace:stop") },
		} {
			put(models.PermissionMember)
			w := b.until(t, b.launch(t, []string{"first", "second"}[i], gpu(1, 100)).ID, models.StateRunning)
			waits := b.queue(t, b.actor, []string{"third", "fourth"}[i])
			put(models.PermissionCustom, "workspace:launch")
			put(models.PermissionOwner)
			if got := b.row(t, w.ID); got.State != models.StateRunning {
				t.Fatalf("with a role that permits it, it is %s: %s", got.State, got.Reason)
			}
			without()
			const says = "the role in the project no longer allows workspaces."
			if got := b.until(t, w.ID, models.StateStopped).Reason.String(); got != "Stopped: "+says {
				t.Errorf("running: %q", got)
			}
			if got := b.row(t, waits.ID); got.Reason.String() != "Canceled while queued: "+says {
				t.Errorf("queued: %s, %q", got.State, got.Reason)
			}
		}
	})
}
