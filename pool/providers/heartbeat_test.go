package providers_test

import (
	"context"
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

// What one agent may go through without being taken for two, and what two
// agents with one key may not. Each letter is a beat: of the agent, or of the
// copy that was made at the beginning; in lower case its answer is lost.
func TestTokenChain(t *testing.T) {
	for _, c := range []struct{ story, beats, fencedAt string }{
		{"answers arrive", "AAAA", ""},
		{"an answer is lost", "AaAA", ""},
		{"several answers are lost in a row", "AaaaaAA", ""},
		{"every other answer is lost", "aAaAaA", ""},
		{"the copy speaks first, then they alternate", "BAB", "B"},
		{"the agent speaks first, then they alternate", "ABA", "A"},
		{"the agent speaks twice before the copy", "AAB", "B"},
		{"the copy speaks twice before the agent", "BBA", "A"},
		{"the copy's answer is lost", "bABA", "A"},
	} {
		t.Run(c.story, func(t *testing.T) {
			atGate(t, func(t *testing.T, g *gate) {
				a := g.enrolled(t, "a", 1)
				copied := *a
				agents := map[string]*host{"A": a, "B": &copied}
				var err error
				last := ""
				for _, letter := range c.beats {
					if err != nil {
						t.Fatalf("shut out at the beat before the last: %v", err)
					}
					last = strings.ToUpper(string(letter))
					_, err = agents[last].beat(last == string(letter))
				}
				if c.fencedAt == "" {
					if err != nil || g.live(t) != 1 {
						t.Errorf("%d agents are live, %v", g.live(t), err)
					}
					return
				}
				refused(t, "the last beat", err, models.KindForbidden, "")
				for name, h := range agents {
					_, err := h.beat(true)
					refused(t, "then "+name, err, models.KindForbidden, "")
				}
				p := a.provider(t)
				if p.State != models.ProviderLost || p.Reason.Empty() || g.live(t) != 0 || g.audited(t, "fence", "agent") != 1 || last != c.fencedAt {
					t.Errorf("the provider is %+v; %d agents are live", p, g.live(t))
				}
			})
		})
	}
}

// A request that was held up on the way has an old token when it arrives. It
// shuts nobody out, for nobody is there to confirm it.
func TestLateDuplicate(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		late := providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices}
		h.beats(t)
		h.beats(t)
		o, err := g.Enrollment.Heartbeat(g.Ctx, h.holder, late, "192.0.2.1")
		if err != nil || o.Confirm == "" || o.Token != "" || len(o.Devices) != 0 {
			t.Fatalf("the duplicate is answered %+v, %v", o, err)
		}
		h.beats(t)
		late.Confirm = o.Confirm // even a confirmation that was held up
		if o, err = g.Enrollment.Heartbeat(g.Ctx, h.holder, late, "192.0.2.1"); err != nil || o.Confirm == "" {
			t.Errorf("the late confirmation is answered %+v, %v", o, err)
		}
		h.beats(t)
		late.Confirm = o.Confirm
		h.token = "" // no token is no token of the chain either
		if _, err := h.beat(true); models.KindOf(err) != models.KindForbidden {
			t.Errorf("without a token: %v", err)
		}
	})
}

func TestRevoke(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		h.beats(t)
		p := h.provider(t)
		refused(t, "a stale version", pooltest.Error(g.Revoke(g.Ctx, g.Root, p.ID, p.Version+1)), models.KindConflict, "")
		m := g.NewTeam(t, "vision")
		w, d := g.Claim(t, m, models.Demand{GPUs: 1, Cores: 50})
		p, err := g.Revoke(g.Ctx, g.Root, p.ID, 0)
		if err != nil || p.State != models.ProviderLost || !strings.Contains(p.Reason.String(), "revoked") {
			t.Errorf("%+v, %v", p, err)
		}
		refused(t, "the next beat", pooltest.Error(h.beat(true)), models.KindForbidden, "")
		refused(t, "renewal", pooltest.Error(h.renew(t, newKey(t))), models.KindForbidden, "")
		refused(t, "revoking again", pooltest.Error(g.Revoke(g.Ctx, g.Root, p.ID, 0)), models.KindConflict, "")
		if _, later := g.Claim(t, m, models.Demand{GPUs: 1, Cores: 10}); later.Outcome == models.OutcomeGranted {
			t.Errorf("shares are given of it: %+v", later)
		}
		shares, err := g.World.Store.Read(g.Ctx).SharesOf(w.HolderID)
		if d.Outcome == models.OutcomeGranted && (err != nil || len(shares) != 1) {
			t.Errorf("what was in use is gone: %v, %v", shares, err)
		}
		again := g.host(t, "a", 1)
		if err := again.redeem(t, again.authorize(t)); err != nil {
			t.Fatal(err)
		}
		if now := h.provider(t); now.ID != p.ID || now.State != models.ProviderOnline {
			t.Errorf("enrolled again it is %+v", now)
		}
	})
}

func TestChangedGPUs(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 2)
		h.beats(t)
		two, all := h.gpuCode(), h.devices
		h.devices = all[:1]
		o := h.beats(t)
		p := h.provider(t)
		if o.State != models.ProviderPending || !strings.Contains(o.Reason, h.gpuCode()) || p.State != o.State || p.ReportedCode != h.gpuCode() ||
			p.GPUCode != two || p.Reason.Empty() {
			t.Errorf("with a GPU less: %+v, %+v", o, p)
		}
		version := p.Version
		if h.beats(t); h.provider(t).Version != version {
			t.Error("a beat that says nothing new changes the provider")
		}
		present := 0
		for _, d := range must(g.World.Store.Read(g.Ctx).DevicesOf(p.ID))(t) {
			if d.Present {
				present++
			}
		}
		if present != 1 {
			t.Errorf("%d devices are present", present)
		}
		if _, decision := g.Claim(t, g.NewTeam(t, "vision"), models.Demand{GPUs: 1, Cores: 10}); decision.Outcome == models.OutcomeGranted {
			t.Error("shares are given of a provider that waits")
		}
		h.devices = all
		if o := h.beats(t); o.State != models.ProviderOnline || h.provider(t).ReportedCode != "" {
			t.Errorf("the GPU is back: %+v", o)
		}
		refused(t, "nothing waits", pooltest.Error(g.Accept(g.Ctx, g.Root, p.ID, 0)), models.KindConflict, "")
		h.devices = all[:1]
		h.beats(t)
		if p, err := g.Accept(g.Ctx, g.Root, p.ID, 0); err != nil || p.State != models.ProviderOnline || p.GPUCode != h.gpuCode() || p.ReportedCode != "" {
			t.Errorf("accepted: %+v, %v", p, err)
		}
		if o := h.beats(t); o.State != models.ProviderOnline || o.Reason != "" || g.audited(t, "accept", "agent") != 1 {
			t.Errorf("after it was accepted: %+v", o)
		}
	})
}

func TestRenew(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		g.Clock.Advance(certificateLife/3 - time.Second)
		if h.beats(t).Renew {
			t.Error("renewal is due too early")
		}
		g.Clock.Advance(time.Second)
		if !h.beats(t).Renew {
			t.Error("renewal is not due after a third")
		}
		refused(t, "the same key", pooltest.Error(h.renew(t, h.key)), models.KindInvalid, "csr")
		if _, err := h.renew(t, newKey(t)); err != nil { // its answer is lost
			t.Fatal(err)
		}
		next, err := h.renew(t, newKey(t))
		if err != nil {
			t.Fatal(err)
		}
		h.beats(t) // with the old certificate, which is still good
		old := h.holder
		h.holder = next
		if h.beats(t).Renew {
			t.Error("the new certificate is due already")
		}
		late := providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices}
		if o, err := g.Enrollment.Heartbeat(g.Ctx, old, late, ""); err != nil || o.Confirm == "" || o.Token != "" {
			t.Errorf("the old certificate after the new one: %+v, %v", o, err)
		}
		if n := g.audited(t, "renew", "agent"); n != 2 {
			t.Errorf("%d renewals are in the audit", n)
		}
		g.Clock.Advance(certificateLife)
		refused(t, "a certificate that has expired", pooltest.Error(h.beat(true)), models.KindUnauthenticated, "")
		if g.live(t) != 1 {
			t.Error("an agent was shut out for it")
		}
	})
}

// renew asks for a certificate for a key as an agent does.
func (h *host) renew(t *testing.T, key []byte) (authority.Peer, error) {
	t.Helper()
	in := providers.Renewal{CSR: h.redemption(t, "", key).CSR, Token: h.token}
	out, err := h.g.Renew(h.g.Ctx, h.holder, in, "192.0.2.1")
	if err == nil && out.Confirm != "" {
		in.Confirm = out.Confirm
		out, err = h.g.Renew(h.g.Ctx, h.holder, in, "192.0.2.1")
	}
	if err != nil {
		return authority.Peer{}, err
	}
	return peerOf(t, out.Certificate), nil
}

// Who has a copy of a key gets no certificate that the agent's own does not
// survive, unless both are shut out.
func TestCopiesDoNotRenew(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		copied := *h
		h.beats(t)
		h.beats(t)
		copied.token = ""
		ask, err := g.Renew(g.Ctx, copied.holder, providers.Renewal{CSR: h.redemption(t, "", newKey(t)).CSR}, "192.0.2.9")
		if err != nil || ask.Certificate != "" || ask.Confirm == "" {
			t.Fatalf("without a token: %+v, %v", ask, err)
		}
		h.beats(t)
		_, err = copied.renew(t, newKey(t))
		refused(t, "without a token, confirmed", err, models.KindForbidden, "")
		if g.live(t) != 0 || g.audited(t, "fence", "agent") != 1 || g.audited(t, "renew", "agent") != 0 {
			t.Error("the copy was not noticed")
		}
	})
}

// A copy that has the token as well, and is faster, is noticed when the agent
// speaks with the certificate that is no more.
func TestCopyWithTheTokenRenews(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		h.beats(t)
		copied := *h
		next, err := copied.renew(t, newKey(t))
		if err != nil {
			t.Fatal(err)
		}
		copied.holder = next
		copied.beats(t)
		refused(t, "the agent", pooltest.Error(h.beat(true)), models.KindForbidden, "")
		refused(t, "its copy", pooltest.Error(copied.beat(true)), models.KindForbidden, "")
		if g.live(t) != 0 || g.audited(t, "fence", "agent") != 1 {
			t.Error("the copy was not noticed")
		}
	})
}

// Who is shut out does not wait for the pool's lock, nor let others wait.
func TestStrangersDoNotTakeTheLock(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h, used := g.enrolled(t, "a", 1), g.host(t, "b", 1)
		late := used.authorize(t)
		if _, err := g.Revoke(g.Ctx, g.Root, h.provider(t).ID, 0); err != nil {
			t.Fatal(err)
		}
		g.Clock.Advance(16 * time.Minute)
		ctx, cancel := context.WithTimeout(g.Ctx, time.Minute)
		defer cancel()
		storetest.InTx(t, g.World.Store, func(q *store.Queries) error {
			if err := q.LockPool(); err != nil {
				return err
			}
			_, err := g.Enrollment.Heartbeat(ctx, h.holder, providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices}, "")
			refused(t, "a beat", err, models.KindForbidden, "")
			_, err = g.Renew(ctx, h.holder, providers.Renewal{CSR: h.redemption(t, "", newKey(t)).CSR, Token: h.token}, "")
			refused(t, "renewal", err, models.KindForbidden, "")
			_, err = g.Redeem(ctx, used.redemption(t, late, used.key), "192.0.2.1")
			refused(t, "a code that is over", err, models.KindInvalid, "code")
			return nil
		})
	})
}

// A provider whose GPUs wait for an authorization gets none that it did not
// have, so it cannot take over what another has just lost.
func TestPendingProvidersTakeNothing(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		victim, thief := g.enrolled(t, "a", 2), g.enrolled(t, "b", 1)
		victim.beats(t)
		all := victim.devices
		victim.devices = all[:1] // the second falls off the bus
		victim.beats(t)
		own := thief.devices
		thief.devices = append(own[:1:1], all[1], providers.DeviceReport{UUID: "GPU-new", NUMA: -1})
		if o := thief.beats(t); o.State != models.ProviderPending {
			t.Errorf("the thief is %+v", o)
		}
		thief.devices = append(own[:1:1], providers.DeviceReport{UUID: all[1].UUID, Parent: own[0].UUID, Profile: "1g.10gb", Cores: 14, NUMA: -1})
		if o := thief.beats(t); o.State != models.ProviderOnline || !strings.Contains(o.Reason, all[1].UUID) {
			t.Errorf("with the GPU as an instance it is %+v", o)
		}
		victim.devices = all
		if o := victim.beats(t); o.State != models.ProviderOnline || o.Reason != "" {
			t.Errorf("the victim is %+v", o)
		}
		if d := must(g.World.Store.Read(g.Ctx).DeviceByUUID(all[1].UUID))(t); d.ProviderID != victim.provider(t).ID || !d.Present || d.ParentID != nil {
			t.Errorf("the GPU is %+v", d)
		}
		thief.devices = own
		if o := thief.beats(t); o.Reason != "" || thief.provider(t).Reason.String() != "" {
			t.Errorf("honest again it is %+v", o)
		}
		if _, err := g.World.Store.Read(g.Ctx).DeviceByUUID("GPU-new"); models.KindOf(err) != models.KindNotFound {
			t.Errorf("a GPU that nobody has authorised is in the pool: %v", err)
		}
	})
}

// A GPU of another provider is left out of a beat; the rest of it counts.
func TestForeignGPUsDoNotStopABeat(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		a, b := g.enrolled(t, "a", 1), g.enrolled(t, "b", 1)
		b.devices = append(b.devices, a.devices[0])
		if o := b.beats(t); o.State != models.ProviderPending {
			t.Errorf("%+v", o)
		}
		if _, err := g.Accept(g.Ctx, g.Root, b.provider(t).ID, 0); err != nil {
			t.Fatal(err)
		}
		o := b.beats(t)
		if p := b.provider(t); o.State != models.ProviderOnline || !strings.Contains(o.Reason, a.devices[0].UUID) || p.Reason.String() != o.Reason {
			t.Errorf("%+v, %+v", o, p)
		}
		if d := must(g.World.Store.Read(g.Ctx).DeviceByUUID(a.devices[0].UUID))(t); d.ProviderID != a.provider(t).ID {
			t.Errorf("it has moved: %+v", d)
		}
		a.beats(t)
	})
}

func TestBeatRefuses(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		uuid := h.devices[0].UUID
		long := strings.Repeat("x", 201)
		for field, change := range map[string]func(b *providers.Heartbeat){
			"gpu_code":          func(b *providers.Heartbeat) { b.GPUCode = "x" },
			"token":             func(b *providers.Heartbeat) { b.Token = long },
			"devices[0].model":  func(b *providers.Heartbeat) { b.Devices = []providers.DeviceReport{{UUID: uuid, Model: long}} },
			"devices[0].driver": func(b *providers.Heartbeat) { b.Devices = []providers.DeviceReport{{UUID: uuid, Driver: "a\x00b"}} },
			"devices[0].cores":  func(b *providers.Heartbeat) { b.Devices = []providers.DeviceReport{{UUID: uuid, Cores: 101}} },
			"devices[0].peers": func(b *providers.Heartbeat) {
				b.Devices = []providers.DeviceReport{{UUID: uuid, Peers: make([]string, 129)}}
			},
			"samples":        func(b *providers.Heartbeat) { b.Samples = make([]providers.Sample, 100_001) },
			"samples[0].age": func(b *providers.Heartbeat) { b.Samples = []providers.Sample{{Age: -1}} },
			"samples[1].age": func(b *providers.Heartbeat) { b.Samples = []providers.Sample{{}, {Age: 31 * 24 * time.Hour}} },
			"faults":         func(b *providers.Heartbeat) { b.Faults = make([]providers.Fault, 10_001) },
			"faults[0].xid":  func(b *providers.Heartbeat) { b.Faults = []providers.Fault{{XID: -1}} },
			"samples[0].processes": func(b *providers.Heartbeat) {
				b.Samples = []providers.Sample{{Processes: make([]providers.Process, 1001)}}
			},
			"samples[0].processes[0].name": func(b *providers.Heartbeat) {
				b.Samples = []providers.Sample{{Processes: []providers.Process{{Name: long}}}}
			},
			"samples[0].utilisation":     func(b *providers.Heartbeat) { b.Samples = []providers.Sample{{Utilisation: 101}} },
			"samples[0].memory_used_mib": func(b *providers.Heartbeat) { b.Samples = []providers.Sample{{MemoryUsedMiB: 1 << 41}} },
		} {
			b := providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices}
			change(&b)
			_, err := g.Enrollment.Heartbeat(g.Ctx, h.holder, b, "192.0.2.1")
			refused(t, field, err, models.KindInvalid, field)
		}
		wrong := providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices, Samples: make([]providers.Sample, 100_000)}
		for i := range wrong.Samples {
			wrong.Samples[i].Age = -1
		}
		_, err := g.Enrollment.Heartbeat(g.Ctx, h.holder, wrong, "192.0.2.1")
		if e, ok := err.(*models.Error); !ok || len(e.Fields) > 100 {
			t.Errorf("%d fields are named", len(err.Error()))
		}
		_, err = g.Enrollment.Heartbeat(g.Ctx, authority.Peer{Serial: "x", Expires: g.Clock.Now().Add(time.Hour)}, providers.Heartbeat{}, "")
		refused(t, "an unknown certificate", err, models.KindForbidden, "")
		h.beats(t)
	})
}

// A provider that was taken for lost is back with its agent's next word.
func TestAgentIsLostAndBack(t *testing.T) {
	atGate(t, func(t *testing.T, g *gate) {
		h := g.enrolled(t, "a", 1)
		g.Clock.Advance(time.Minute)
		if err := g.World.Providers.Sweep(g.Ctx); err != nil || h.provider(t).State != models.ProviderLost {
			t.Errorf("silent it is %s, %v", h.provider(t).State, err)
		}
		if o := h.beats(t); o.State != models.ProviderOnline || h.provider(t).State != models.ProviderOnline {
			t.Errorf("heard it is %s", o.State)
		}
		list, err := g.World.Store.Read(g.Ctx).Notifications(g.Root.User.ID, store.Page{})
		if err != nil || len(list) != 2 || list[1].Kind != models.NotificationProviderLost || list[0].Kind != models.NotificationProviderReturned {
			t.Errorf("administrators are notified of %+v, %v", list, err)
		}
	})
}

// What a beat of a machine with eight GPUs costs, by one agent after another:
// they have the pool's lock in turn.
func BenchmarkBeat(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			access, err := policies.NewAccess()
			if err != nil {
				b.Fatal(err)
			}
			store := storetest.Open(b, dialect)
			h := benched(b, store, access)
			samples := make([]providers.Sample, len(h.devices))
			for i, d := range h.devices {
				samples[i] = providers.Sample{UUID: d.UUID, Utilisation: 50, MemoryUsedMiB: 1000}
			}
			for b.Loop() {
				o, err := h.g.Enrollment.Heartbeat(b.Context(), h.holder, providers.Heartbeat{Token: h.token, GPUCode: h.gpuCode(), Devices: h.devices, Samples: samples}, "192.0.2.1")
				if err != nil {
					b.Fatal(err)
				}
				h.token = o.Token
			}
		})
	}
}

// benched is a host with eight GPUs whose agent has enrolled.
func benched(b *testing.B, store *store.Store, access *policies.Access) *host {
	b.Helper()
	a, err := authority.Open(filepath.Join(b.TempDir(), "authority.pem"), store.Now)
	if err != nil {
		b.Fatal(err)
	}
	g := &gate{authority: a, Enrollment: &providers.Enrollment{Store: store, Access: access, Authority: a, CertificateLifetime: time.Hour, Every: time.Second},
		World: &pooltest.World{Ctx: b.Context(), Store: store, Root: policies.Actor{User: storetest.User(b, store, "root@example.org", true)}}}
	h := g.host(b, "a", 8)
	if err := h.redeem(b, h.authorize(b)); err != nil {
		b.Fatal(err)
	}
	return h
}
