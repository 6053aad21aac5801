package workspaces_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"weir/models"
	"weir/pool/projects"
	"weir/workspaces"
	"weir/workspaces/runtime"
)

// A start gets what its project allows then: the addresses of the names, but none that no
// sandbox may reach. A resolver that is silent does not hold it up.
func TestOutgoingConnectionsOfAStart(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		addresses := map[string]string{"mirror.example": "192.0.2.9", "inside.example": "127.0.0.1"}
		b.restartWith(func(c *workspaces.ReconcilerConfig) {
			c.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
				if name == "silent.example" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if a, ok := addresses[name]; ok {
					return []netip.Addr{netip.MustParseAddr(a), netip.MustParseAddr("::ffff:" + a)}, nil
				}
				return nil, errors.New("no such host")
			}
		})
		mirror := netip.MustParseAddr("192.0.2.9")
		for i, c := range []struct {
			rule *models.Outgoing
			want *runtime.Outgoing
		}{
			{nil, nil},
			{&models.Outgoing{Access: models.OutgoingNone}, &runtime.Outgoing{Names: map[string][]netip.Addr{}}},
			{&models.Outgoing{Access: models.OutgoingListed, Hosts: []string{"mirror.example", "inside.example", "gone.example", "silent.example", "10.0.0.0/8"}},
				&runtime.Outgoing{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.PrefixFrom(mirror, 32)},
					Names: map[string][]netip.Addr{"mirror.example": {mirror}}, Unknown: []string{"gone.example", "inside.example", "silent.example"}}},
			{&models.Outgoing{}, nil},
		} {
			in := projects.ProjectInput{Name: "vision", Quota: plenty.Input(), Outgoing: c.rule, Version: int64(i + 1)}
			if _, err := b.projects.UpdateProject(b.ctx, b.root, b.project.ID, in); err != nil {
				t.Fatal(err)
			}
			w := b.launch(t, fmt.Sprint("a", i), models.LaunchParameters{})
			b.until(t, w.ID, models.StateRunning)
			if got := b.runtime.specs[i].Outgoing; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v: %+v instead of %+v", c.rule, got, c.want)
			}
		}
	})
}
