package providers_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/authority"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// gate is a world with an enrollment.
type gate struct {
	*pooltest.World
	*providers.Enrollment
	authority *authority.Authority
}

const certificateLife = time.Hour

func newGate(t *testing.T, o *pooltest.World) *gate {
	t.Helper()
	a, err := authority.Open(filepath.Join(t.TempDir(), "authority.pem"), o.Store.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &gate{World: o, authority: a, Enrollment: &providers.Enrollment{Store: o.Store, Access: o.Access, Authority: a,
		CertificateLifetime: certificateLife, Every: 2 * time.Second}}
}

func atGate(t *testing.T, test func(t *testing.T, g *gate)) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) { test(t, newGate(t, o)) })
}

// host is a machine with an agent, as far as the portal sees it.
type host struct {
	g       *gate
	digest  string
	devices []providers.DeviceReport
	key     []byte
	holder  authority.Peer
	token   string
}

// host has n GPUs of its own.
func (g *gate) host(t testing.TB, name string, n int) *host {
	t.Helper()
	h := &host{g: g, digest: providers.MachineDigest(name), key: newKey(t)}
	for i := range n {
		h.devices = append(h.devices, providers.DeviceReport{UUID: fmt.Sprintf("GPU-%s-%d", name, i), Index: i, Minor: i,
			Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 80_000, Simulated: true, NUMA: -1})
	}
	return h
}

func newKey(t testing.TB) []byte {
	t.Helper()
	key, err := authority.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (h *host) gpuCode() string {
	return providers.GPUCodeOf(h.digest, h.devices)
}

// authorize asks for a code for the host.
func (h *host) authorize(t testing.TB) string {
	t.Helper()
	code, _, err := h.g.Authorize(h.g.Ctx, h.g.Root, providers.AuthorizeInput{GPUCode: h.gpuCode()})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func (h *host) redemption(t testing.TB, code string, key []byte) providers.Redemption {
	t.Helper()
	csr, err := authority.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return providers.Redemption{Code: code, CSR: string(csr), Name: "node", Machine: h.digest, Devices: h.devices}
}

func (h *host) redeem(t testing.TB, code string) error {
	t.Helper()
	out, err := h.g.Redeem(h.g.Ctx, h.redemption(t, code, h.key), "192.0.2.1")
	if err == nil {
		h.token, h.holder = out.Token, peerOf(t, out.Certificate)
	}
	return err
}

func peerOf(t testing.TB, certificate string) authority.Peer {
	t.Helper()
	cert, err := authority.ParseCertificate([]byte(certificate))
	if err != nil {
		t.Fatal(err)
	}
	return authority.PeerOf(cert)
}

// enrolled is a host whose agent has been let in.
func (g *gate) enrolled(t *testing.T, name string, n int) *host {
	t.Helper()
	h := g.host(t, name, n)
	if err := h.redeem(t, h.authorize(t)); err != nil {
		t.Fatal(err)
	}
	return h
}

// beat says a beat as an agent does: it confirms when it is told to.
func (h *host) beat(answered bool) (providers.Orders, error) {
	b := providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices}
	o, err := h.g.Enrollment.Heartbeat(h.g.Ctx, h.holder, b, "192.0.2.1")
	if err == nil && o.Confirm != "" {
		b.Confirm = o.Confirm
		o, err = h.g.Enrollment.Heartbeat(h.g.Ctx, h.holder, b, "192.0.2.1")
	}
	if err == nil && answered {
		h.token = o.Token
	}
	return o, err
}

func (h *host) beats(t *testing.T) providers.Orders {
	t.Helper()
	o, err := h.beat(true)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// provider is the only one of the host's machine.
func (h *host) provider(t *testing.T) models.Provider {
	t.Helper()
	p, err := h.g.World.Store.Read(h.g.Ctx).ProviderByMachine(h.digest)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// live counts the agents that are not revoked.
func (g *gate) live(t *testing.T) int {
	t.Helper()
	agents, err := storetest.LiveAgents(g.World.Store.Read(g.Ctx))
	if err != nil {
		t.Fatal(err)
	}
	return len(agents)
}

func (g *gate) audited(t *testing.T, action, object string) (n int) {
	t.Helper()
	entries, err := g.World.Store.Read(g.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Action == action && e.Object == object {
			n++
		}
	}
	return n
}

// refused checks that err is of a kind and names a field, if one is given.
func refused(t *testing.T, what string, err error, kind models.Kind, field string) {
	t.Helper()
	var e *models.Error
	if !errors.As(err, &e) || e.Kind != kind || field != "" && (len(e.Fields) == 0 || e.Fields[0].Name != field) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestEnrol(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.host(t, "a", 2)
		code := h.authorize(t)
		if open, err := g.Authorizations(g.Ctx, g.Root); err != nil || len(open) != 1 || open[0].GPUCode != h.gpuCode() {
			t.Errorf("open are %+v, %v", open, err)
		}
		if err := h.redeem(t, strings.ToLower(code)); err != nil {
			t.Fatal(err)
		}
		p := h.provider(t)
		if p.Name != "node" || p.State != models.ProviderOnline || !p.Agent || p.GPUCode != h.gpuCode() || p.OwnerID == nil ||
			*p.OwnerID != g.Root.User.ID || p.Address != "192.0.2.1" {
			t.Errorf("the provider is %+v", p)
		}
		devices, err := g.World.Store.Read(g.Ctx).DevicesOf(p.ID)
		if err != nil || len(devices) != 2 {
			t.Errorf("%d devices, %v", len(devices), err)
		}
		o := h.beats(t)
		if o.State != models.ProviderOnline || o.Every != 2*time.Second || o.Renew || o.Confirm != "" {
			t.Errorf("the orders are %+v", o)
		}
		if g.audited(t, "create", "authorization") != 1 || g.audited(t, "enrol", "provider") != 1 {
			t.Error("not audited")
		}
		entries, _ := g.World.Store.Read(g.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 200})
		for _, e := range entries {
			if strings.Contains(e.After, code) || strings.Contains(e.After, code[:9]) {
				t.Errorf("the code is in the audit: %s", e.After)
			}
		}
		if open, err := g.Authorizations(g.Ctx, g.Root); err != nil || len(open) != 0 {
			t.Errorf("open are %+v, %v", open, err)
		}
	})
}

func TestEnrolAgain(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		old := g.enrolled(t, "a", 2)
		old.beats(t)
		p := old.provider(t)
		other := g.enrolled(t, "b", 1) // another machine of the same name
		if name := other.provider(t).Name; name != "node-2" {
			t.Errorf("the other is called %s", name)
		}
		fresh := g.host(t, "a", 2)
		code, _, err := g.Authorize(g.Ctx, g.Root, providers.AuthorizeInput{GPUCode: fresh.gpuCode(), Name: "rack 7"})
		if err != nil {
			t.Fatal(err)
		}
		if err := fresh.redeem(t, code); err != nil {
			t.Fatal(err)
		}
		if now := fresh.provider(t); now.ID != p.ID || now.Name != "rack 7" || g.live(t) != 2 {
			t.Errorf("the provider is %+v, with %d agents", now, g.live(t))
		}
		_, err = old.beat(true)
		refused(t, "the older agent", err, models.KindForbidden, "")
		fresh.beats(t)
	})
}

// A new code changes the owner of a machine only when it names one.
func TestEnrolAgainKeepsTheOwner(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		ada, bob := g.NewPerson(t), g.NewPerson(t)
		for _, c := range []struct{ given, want int64 }{{ada.ID, ada.ID}, {0, ada.ID}, {bob.ID, bob.ID}, {g.Root.User.ID, g.Root.User.ID}} {
			h := g.host(t, "a", 1)
			code, _, err := g.Authorize(g.Ctx, g.Root, providers.AuthorizeInput{GPUCode: h.gpuCode(), OwnerID: c.given})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.redeem(t, code); err != nil {
				t.Fatal(err)
			}
			if p := h.provider(t); p.OwnerID == nil || *p.OwnerID != c.want {
				t.Errorf("with owner_id %d the owner is %v, want %d", c.given, p.OwnerID, c.want)
			}
		}
		entries := must(g.World.Store.Read(g.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 200}))(t)
		before := 0
		for _, e := range entries {
			if e.Action == "enrol" && strings.Contains(e.Before, "owner_id") {
				before++
			}
		}
		if before != 3 {
			t.Errorf("%d of three changes tell what was before", before)
		}
	})
}

// A provider that was removed comes back with a new code, as itself.
func TestEnrolAfterRemoval(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		p := h.provider(t)
		if _, err := g.World.Providers.Remove(g.Ctx, g.Root, p.ID, 0); err != nil {
			t.Fatal(err)
		}
		refused(t, "the agent of a removed provider", pooltest.Error(h.beat(true)), models.KindForbidden, "")
		if now := h.provider(t); now.State != models.ProviderOffline {
			t.Errorf("its word brought it back: %+v", now)
		}
		if err := h.redeem(t, h.authorize(t)); err != nil {
			t.Fatal(err)
		}
		if now := h.provider(t); now.ID != p.ID || now.State != models.ProviderOnline {
			t.Errorf("it is %+v", now)
		}
		devices := must(g.World.Store.Read(g.Ctx).DevicesOf(p.ID))(t)
		if len(devices) != 1 || !devices[0].Present {
			t.Errorf("its devices are %+v", devices)
		}
	})
}

func TestAuthorizeRefuses(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		good := g.host(t, "b", 1).gpuCode()
		for name, c := range map[string]struct {
			in    providers.AuthorizeInput
			field string
		}{
			"no code":    {providers.AuthorizeInput{}, "gpu_code"},
			"short code": {providers.AuthorizeInput{GPUCode: good[1:]}, "gpu_code"},
			"long name":  {providers.AuthorizeInput{GPUCode: good, Name: strings.Repeat("x", 101)}, "name"},
			"taken name": {providers.AuthorizeInput{GPUCode: good, Name: h.provider(t).Name}, "name"},
			"no owner":   {providers.AuthorizeInput{GPUCode: good, OwnerID: 99}, "owner_id"},
		} {
			_, _, err := g.Authorize(g.Ctx, g.Root, c.in)
			refused(t, name, err, models.KindInvalid, c.field)
		}
		in := providers.AuthorizeInput{GPUCode: h.gpuCode()}
		stranger := g.Actor(t, g.NewPerson(t))
		for actor, kind := range map[*policies.Actor]models.Kind{{}: models.KindUnauthenticated, &stranger: models.KindForbidden} {
			_, _, err := g.Authorize(g.Ctx, *actor, in)
			refused(t, "authorize", err, kind, "")
			refused(t, "list", pooltest.Error(g.Authorizations(g.Ctx, *actor)), kind, "")
			refused(t, "accept", pooltest.Error(g.Accept(g.Ctx, *actor, h.provider(t).ID, 0)), kind, "")
			refused(t, "revoke", pooltest.Error(g.Revoke(g.Ctx, *actor, h.provider(t).ID, 0)), kind, "")
		}
		system := policies.System("admin")
		in.OwnerID = g.Root.User.ID
		if _, a, err := g.Authorize(g.Ctx, system, in); err != nil || a.IssuedBy != g.Root.User.ID {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestRedeemRefuses(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h, other := g.host(t, "a", 2), g.host(t, "b", 2)
		strange, err := authority.Open(filepath.Join(t.TempDir(), "authority.pem"), g.World.Store.Now)
		if err != nil {
			t.Fatal(err)
		}
		code := h.authorize(t)
		for name, c := range map[string]struct {
			change func(r *providers.Redemption)
			field  string
		}{
			"no code":             {func(r *providers.Redemption) { r.Code = "" }, "code"},
			"unknown code":        {func(r *providers.Redemption) { r.Code = g.authority.NewCode().String() }, "code"},
			"another portal's":    {func(r *providers.Redemption) { r.Code = strange.NewCode().String() }, "code"},
			"no request":          {func(r *providers.Redemption) { r.CSR = "" }, "csr"},
			"no name":             {func(r *providers.Redemption) { r.Name = "" }, "name"},
			"not a digest":        {func(r *providers.Redemption) { r.Machine = "a" }, "machine"},
			"another machine":     {func(r *providers.Redemption) { r.Machine = other.digest }, "code"},
			"a GPU less":          {func(r *providers.Redemption) { r.Devices = r.Devices[:1] }, "code"},
			"other GPUs":          {func(r *providers.Redemption) { r.Devices = other.devices }, "code"},
			"a GPU twice":         {func(r *providers.Redemption) { r.Devices = append(r.Devices[:1:1], r.Devices[0]) }, "devices[1].uuid"},
			"too many GPUs":       {func(r *providers.Redemption) { r.Devices = make([]providers.DeviceReport, 129) }, "devices"},
			"an instance of none": {func(r *providers.Redemption) { r.Devices = []providers.DeviceReport{{UUID: "x", Parent: "y"}} }, "devices[0].parent"},
		} {
			r := h.redemption(t, code, h.key)
			c.change(&r)
			_, err := g.Redeem(g.Ctx, r, "192.0.2.1")
			refused(t, name, err, models.KindInvalid, c.field)
		}
		if g.live(t) != 0 {
			t.Error("an agent was enrolled")
		}
		if n := g.audited(t, "refuse", "authorization"); n != 1 {
			t.Errorf("that a code was tried from elsewhere is %d times in the audit", n)
		}
		if err := h.redeem(t, code); err != nil {
			t.Errorf("the code was used up by refusals: %v", err)
		}
	})
}

func TestCodeExpires(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		late, h := g.host(t, "a", 1), g.host(t, "b", 1)
		code, used := late.authorize(t), h.authorize(t)
		if err := h.redeem(t, used); err != nil {
			t.Fatal(err)
		}
		g.Clock.Advance(15*time.Minute - time.Second)
		if err := h.redeem(t, used); err != nil {
			t.Errorf("the same key, in time: %v", err)
		}
		g.Clock.Advance(time.Second)
		refused(t, "a code that was not used in time", late.redeem(t, code), models.KindInvalid, "code")
		refused(t, "the same key, too late", h.redeem(t, used), models.KindConflict, "")
	})
}

func TestCodeIsUsedOnce(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.host(t, "a", 1)
		code := h.authorize(t)
		if err := h.redeem(t, code); err != nil {
			t.Fatal(err)
		}
		lost := *h // its answer was lost, so it asks again
		if err := h.redeem(t, code); err != nil || g.live(t) != 1 {
			t.Fatalf("%d agents, %v", g.live(t), err)
		}
		refused(t, "the certificate that was lost", pooltest.Error(lost.beat(true)), models.KindForbidden, "")
		thief := *h
		thief.key = newKey(t)
		refused(t, "another key", thief.redeem(t, code), models.KindConflict, "")
		h.beats(t)
		refused(t, "the same key, after its first word", h.redeem(t, code), models.KindConflict, "")
		if n := g.audited(t, "refuse", "authorization"); n != 1 || g.live(t) != 1 {
			t.Errorf("%d attempts are audited; %d agents", n, g.live(t))
		}
		h.beats(t)
	})
}

func TestParallelRedemptions(t *testing.T) {
	const n = 100
	atGate(t, func(t *testing.T, g *gate) {
		h := g.host(t, "a", 2)
		code := h.authorize(t)
		redemptions := make([]providers.Redemption, n)
		for i := range redemptions {
			redemptions[i] = h.redemption(t, code, newKey(t))
		}
		var kinds storetest.ErrorCounts
		storetest.Concurrently(n, func(i int) { kinds.Add(pooltest.Error(g.Redeem(g.Ctx, redemptions[i], "192.0.2.1"))) })
		kinds.Want(t, 1, models.KindConflict, n-1)
		providers, err := g.World.Store.Read(g.Ctx).Providers()
		if err != nil || len(providers) != 1 || g.live(t) != 1 || g.audited(t, "refuse", "authorization") != 1 {
			t.Errorf("%d providers, %d agents, %v", len(providers), g.live(t), err)
		}
		if all, err := g.World.Store.Read(g.Ctx).AgentsOf(providers[0].ID, 10); err != nil || len(all) != 1 {
			t.Errorf("%d agents were made, %v", len(all), err)
		}
	})
}

func TestForeignGPU(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h, copied := g.enrolled(t, "a", 1), g.host(t, "b", 1)
		copied.devices = h.devices
		code := copied.authorize(t)
		refused(t, "a GPU that is in the pool already", copied.redeem(t, code), models.KindConflict, "")
		if g.live(t) != 1 || len(must(g.World.Store.Read(g.Ctx).Providers())(t)) != 1 {
			t.Error("something of it was kept")
		}
	})
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
