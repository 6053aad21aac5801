package providers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// cluster vouches for nodes by tokens that are their names.
type cluster struct{ down bool }

func (c *cluster) NodeOf(_ context.Context, token string) (string, error) {
	if c.down {
		return "", models.Unavailable(errors.New("no route"), "The cluster cannot be asked now.")
	}
	name, ok := strings.CutPrefix(token, "pod on ")
	if !ok {
		return "", &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("The cluster does not know this token.")}
	}
	return name, nil
}

// node is a host whose agent joins by its cluster's word.
type node struct {
	*host
	name    string
	machine string // its own identity; the host's is what the portal makes of it
}

// node runs on a machine of which the test's other helpers know the GPUs.
func (g *gate) node(t testing.TB, name, machine string, gpus int) *node {
	t.Helper()
	h := g.host(t, machine, gpus)
	n := &node{h, name, h.digest}
	h.digest = providers.NodeDigest(name)
	return n
}

func (n *node) joining(t testing.TB) providers.Joining {
	t.Helper()
	n.key = newKey(t)
	r := n.redemption(t, "", n.key)
	return providers.Joining{Token: "pod on " + n.name, CSR: r.CSR, Machine: n.machine, Devices: n.devices}
}

func (n *node) join(t testing.TB) (providers.Enrolled, error) {
	t.Helper()
	out, err := n.g.Join(n.g.Ctx, n.joining(t), "192.0.2.7")
	if err == nil {
		n.token, n.holder, n.digest = out.Token, peerOf(t, out.Certificate), out.Machine
	}
	return out, err
}

func (n *node) joins(t testing.TB) providers.Enrolled {
	t.Helper()
	out, err := n.join(t)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (g *gate) providers(t testing.TB) []models.Provider {
	t.Helper()
	all, err := g.World.Store.Read(g.Ctx).Providers()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func atCluster(t *testing.T, test func(t *testing.T, g *gate)) {
	atGate(t, func(t *testing.T, g *gate) {
		g.Cluster = &cluster{}
		test(t, g)
	})
}

func TestJoin(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		n := g.node(t, "node-1", "machine", 2)
		out := n.joins(t)
		if out.Provider != "node-1" || out.State != models.ProviderOnline || out.Machine != providers.NodeDigest("node-1") {
			t.Errorf("%+v", out)
		}
		p := n.provider(t)
		if p.Name != "node-1" || !p.Agent || p.GPUCode != n.gpuCode() || p.ReportedCode != "" || *p.OwnerID != g.Root.User.ID || p.Address != "192.0.2.7" {
			t.Errorf("the provider is %+v", p)
		}
		if o := n.beats(t); o.State != models.ProviderOnline {
			t.Errorf("the orders are %+v", o)
		}
		entries, err := g.World.Store.Read(g.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 200})
		if err != nil || g.audited(t, "enrol", "provider") != 1 {
			t.Errorf("not audited, %v", err)
		}
		for _, e := range entries {
			if e.Action == "enrol" && (e.Actor != "weir cluster" || e.Before != "") {
				t.Errorf("the audit says %+v", e)
			}
			if strings.Contains(e.After, "pod on") {
				t.Error("the token is in the audit")
			}
		}
	})
}

// A pod that lost its state is the node's agent all the same, and the one
// before is not any more. What the owner has set stays.
func TestJoinAgain(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		n := g.node(t, "node-1", "machine", 2)
		n.joins(t)
		n.beats(t)
		p := n.provider(t)
		ada := g.NewPerson(t)
		_, err := g.World.Providers.Update(g.Ctx, g.Root, p.ID, providers.ProviderInput{Name: "rack 7", OwnerID: &ada.ID})
		refused(t, "the name of a node", err, models.KindInvalid, "name")
		if _, err := g.World.Providers.Update(g.Ctx, g.Root, p.ID, providers.ProviderInput{Name: "node-1", OwnerID: &ada.ID}); err != nil {
			t.Fatal(err)
		}
		m := g.NewTeam(t, "vision")
		inUse, _ := g.Claim(t, m, pooltest.Half)
		older := *n.host
		n.joins(t)
		_, err = older.beat(true)
		refused(t, "the older agent", err, models.KindForbidden, "")
		n.beats(t)
		again := n.provider(t)
		if again.ID != p.ID || again.Name != "node-1" || *again.OwnerID != ada.ID || g.live(t) != 1 || len(g.providers(t)) != 1 {
			t.Errorf("%d agents; the provider is %+v", g.live(t), again)
		}
		if shares, err := g.World.Store.Read(g.Ctx).SharesOf(inUse.HolderID); err != nil || len(shares) != 1 || shares[0].Until != nil {
			t.Errorf("the share is %+v, %v", shares, err)
		}
		fresh := g.node(t, "node-1", "machine", 2) // set up anew: only the GPUs are the same
		fresh.machine = providers.MachineDigest("set up anew")
		if out := fresh.joins(t); out.State != models.ProviderOnline || fresh.provider(t).ID != p.ID {
			t.Errorf("%+v", out)
		}
	})
}

// The cluster vouches for the node, not for other GPUs than it came with.
func TestJoinWithOtherGPUs(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		n := g.node(t, "node-1", "machine", 2)
		n.joins(t)
		before := n.provider(t)
		larger := g.node(t, "node-1", "machine", 3)
		if out := larger.joins(t); out.State != models.ProviderPending {
			t.Errorf("with another GPU it is %s", out.State)
		}
		if o := larger.beats(t); o.State != models.ProviderPending {
			t.Errorf("its word changed that: %+v", o)
		}
		p := larger.provider(t)
		devices := must(g.World.Store.Read(g.Ctx).DevicesOf(p.ID))(t)
		if p.ID != before.ID || p.GPUCode != before.GPUCode || p.ReportedCode != larger.gpuCode() || p.Reason.Empty() || len(devices) != 2 {
			t.Errorf("with %d devices it is %+v", len(devices), p)
		}
		if _, err := g.Accept(g.Ctx, g.Root, p.ID, 0); err != nil {
			t.Fatal(err)
		}
		if o := larger.beats(t); o.State != models.ProviderOnline {
			t.Errorf("accepted it is %+v", o)
		}
		if out := larger.joins(t); out.State != models.ProviderOnline {
			t.Errorf("accepted, it joins as %s", out.State)
		}
		back := g.node(t, "node-1", "machine", 2)
		code, _, err := g.Authorize(g.Ctx, g.Root, providers.AuthorizeInput{GPUCode: back.gpuCode()})
		if err != nil {
			t.Fatal(err)
		}
		if out := back.joins(t); out.State != models.ProviderOnline {
			t.Errorf("with GPUs that were authorised beforehand it is %s", out.State)
		}
		back.key = newKey(t)
		refused(t, "the code that the cluster has used", back.redeem(t, code), models.KindConflict, "")
	})
}

// A node becomes a provider of its name that was enrolled by hand only if it
// is the same machine with the same GPUs.
func TestJoinAsEnrolledByHand(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		hand := g.enrolled(t, "machine", 2) // it is called node
		p := hand.provider(t)
		for name, stranger := range map[string]*node{
			"another machine": g.node(t, "node", "other", 2),
			"other GPUs":      g.node(t, "node", "machine", 3),
		} {
			_, err := stranger.join(t)
			refused(t, name, err, models.KindConflict, "")
		}
		_, err := g.node(t, "node-1", "machine", 2).join(t)
		refused(t, "under another name", err, models.KindConflict, "")
		hand.beats(t)
		if len(g.providers(t)) != 1 || g.live(t) != 1 {
			t.Errorf("there are %+v", g.providers(t))
		}

		same := g.node(t, "node", "machine", 2)
		if out := same.joins(t); out.State != models.ProviderOnline || same.provider(t).ID != p.ID {
			t.Errorf("%+v", out)
		}
		same.beats(t)
		_, err = hand.beat(true)
		refused(t, "the agent that was enrolled by hand", err, models.KindForbidden, "")
		if n := len(g.providers(t)); n != 1 || g.live(t) != 1 {
			t.Errorf("%d providers, %d agents", n, g.live(t))
		}
	})
}

// A provider that was enrolled by hand and then removed makes room.
func TestJoinAfterRemovalByHand(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		p := g.enrolled(t, "machine", 1).provider(t)
		if _, err := g.World.Providers.Remove(g.Ctx, g.Root, p.ID, 0); err != nil {
			t.Fatal(err)
		}
		n := g.node(t, "node", "other", 2)
		if out := n.joins(t); out.Provider != "node" || out.State != models.ProviderOnline || n.provider(t).ID != p.ID {
			t.Errorf("%+v", out)
		}
	})
}

// What an administrator has shut out the cluster does not let in again; an
// authorization of its GPU code does, which nobody has to carry there.
func TestJoinWhenShutOut(t *testing.T) {
	for name, shut := range map[string]func(*gate, int64) error{
		"revoked": func(g *gate, id int64) error { return pooltest.Error(g.Revoke(g.Ctx, g.Root, id, 0)) },
		"removed": func(g *gate, id int64) error { return pooltest.Error(g.World.Providers.Remove(g.Ctx, g.Root, id, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			atCluster(t, func(t *testing.T, g *gate) {
				n := g.node(t, "node-1", "machine", 1)
				n.joins(t)
				p := n.provider(t)
				if err := shut(g, p.ID); err != nil {
					t.Fatal(err)
				}
				_, err := n.join(t)
				refused(t, "join", err, models.KindForbidden, "")
				if now := n.provider(t); g.live(t) != 0 || now.Version < p.Version || now.State == models.ProviderOnline {
					t.Errorf("%d agents; the provider is %+v", g.live(t), now)
				}
				n.authorize(t)
				if out := n.joins(t); out.State != models.ProviderOnline || n.provider(t).ID != p.ID {
					t.Errorf("%+v", out)
				}
				n.joins(t) // what was authorised once stays so
			})
		})
	}
}

// Two agents with one key, because a machine was copied, are one on each node.
func TestJoinAfterFence(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		n := g.node(t, "node-1", "machine", 1)
		n.joins(t)
		n.beats(t)
		stale := *n.host
		n.beats(t)
		n.beats(t)
		_, err := stale.beat(true)
		refused(t, "the copy", err, models.KindForbidden, "")
		if out := n.joins(t); out.State != models.ProviderOnline {
			t.Errorf("%+v", out)
		}
	})
}

func TestJoinRefuses(t *testing.T) {
	atCluster(t, func(t *testing.T, g *gate) {
		n := g.node(t, "node-1", "machine", 1)
		for name, c := range map[string]struct {
			change func(j *providers.Joining)
			kind   models.Kind
			field  string
		}{
			"no token":      {func(j *providers.Joining) { j.Token = "" }, models.KindInvalid, "token"},
			"a long token":  {func(j *providers.Joining) { j.Token = strings.Repeat("x", 16<<10+1) }, models.KindInvalid, "token"},
			"a wrong token": {func(j *providers.Joining) { j.Token = "x" }, models.KindUnauthenticated, ""},
			"no request":    {func(j *providers.Joining) { j.CSR = "" }, models.KindInvalid, "csr"},
			"no identity":   {func(j *providers.Joining) { j.Machine = "" }, models.KindInvalid, "machine"},
			"a GPU twice":   {func(j *providers.Joining) { j.Devices = append(j.Devices, j.Devices[0]) }, models.KindInvalid, "devices[1].uuid"},
			"a long name":   {func(j *providers.Joining) { j.Token = "pod on " + strings.Repeat("n", 101) }, models.KindInvalid, "node"},
		} {
			j := n.joining(t)
			c.change(&j)
			refused(t, name, pooltest.Error(g.Join(g.Ctx, j, "192.0.2.7")), c.kind, c.field)
		}
		g.Cluster = &cluster{down: true}
		refused(t, "a cluster that does not answer", pooltest.Error(n.join(t)), models.KindUnavailable, "")
		g.Cluster = nil
		refused(t, "a portal without a cluster", pooltest.Error(n.join(t)), models.KindNotFound, "")
		if len(g.providers(t)) != 0 || g.live(t) != 0 || g.audited(t, "enrol", "provider") != 0 {
			t.Error("something of it was kept")
		}
	})
}

func TestNodesHaveAnOwner(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		g.Cluster = &cluster{}
		ada := g.NewPerson(t)
		g.NodeOwner = "nobody@example.org"
		refused(t, "an owner who does not exist", pooltest.Error(g.node(t, "node-1", "a", 1).join(t)), models.KindConflict, "")
		g.NodeOwner = ada.Email
		n := g.node(t, "node-1", "a", 1)
		n.joins(t)
		if p := n.provider(t); *p.OwnerID != ada.ID {
			t.Errorf("the owner is %d", *p.OwnerID)
		}
		g.disable(t, ada)
		n.joins(t) // a node that is known needs no owner
		refused(t, "an owner who is disabled", pooltest.Error(g.node(t, "node-2", "b", 1).join(t)), models.KindConflict, "")
		g.NodeOwner = ""
		g.disable(t, g.Root.User)
		refused(t, "no administrator", pooltest.Error(g.node(t, "node-2", "b", 1).join(t)), models.KindConflict, "")
	})
}

func (g *gate) disable(t *testing.T, u models.User) {
	t.Helper()
	err := g.World.Store.InTx(g.Ctx, func(q *store.Queries) error {
		now, err := q.User(u.ID)
		if err != nil {
			return err
		}
		now.Disabled = true
		return q.UpdateUser(&now)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Of many pods that join as one node at once, one agent is left.
func TestParallelJoins(t *testing.T) {
	const n = 20
	atCluster(t, func(t *testing.T, g *gate) {
		nodes := make([]*node, n)
		joinings := make([]providers.Joining, n)
		for i := range nodes {
			nodes[i] = g.node(t, "node-1", "machine", 2)
			joinings[i] = nodes[i].joining(t)
		}
		var kinds storetest.ErrorCounts
		storetest.Concurrently(n, func(i int) { kinds.Add(pooltest.Error(g.Join(g.Ctx, joinings[i], "192.0.2.7"))) })
		kinds.Want(t, n, models.KindConflict, 0)
		if len(g.providers(t)) != 1 || g.live(t) != 1 {
			t.Errorf("%d providers, %d agents", len(g.providers(t)), g.live(t))
		}
	})
}
