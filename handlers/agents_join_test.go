package handlers

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir/models"
	"weir/pool/authority"
	"weir/pool/providers"
)

// oneToken vouches for a node by a single token.
type oneToken struct {
	asked, at, most atomic.Int64 // how often, how many at once now, and at most
}

func (o *oneToken) NodeOf(_ context.Context, token string) (string, error) {
	o.asked.Add(1)
	defer o.at.Add(-1)
	for now := o.at.Add(1); ; {
		most := o.most.Load()
		if now <= most || o.most.CompareAndSwap(most, now) {
			break
		}
	}
	if token != "good-token" {
		return "", &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("The cluster does not know it.")}
	}
	return "node-1", nil
}

func TestAgentsJoin(t *testing.T) {
	c := newCounter(t)
	cluster := &oneToken{}
	devices := []providers.DeviceReport{{UUID: "GPU-x", Model: "NVIDIA H200", MemoryMiB: 143771}}
	key := must(authority.NewKey())(t)
	joining := providers.Joining{Token: "good-token", CSR: csrOf(t, key), Machine: providers.MachineDigest("machine"), Devices: devices}
	bare := c.client("", "")
	if status, body := c.post(bare, "/v1/join", joining, nil); status != 404 || !strings.Contains(body, "--kube-agents") {
		t.Errorf("without a cluster: %d %s", status, body)
	}
	c.enrollment.Cluster = cluster
	for _, r := range []struct {
		change func(*providers.Joining)
		status int
		says   string
	}{
		{func(j *providers.Joining) { j.Token = "bad-token" }, 401, "does not know it"},
		{func(j *providers.Joining) { j.Token = "" }, 422, `"field":"token"`},
		{func(j *providers.Joining) { j.Token = strings.Repeat("x", 20<<10) }, 422, `"field":"token"`},
		{func(j *providers.Joining) { j.Token = strings.Repeat("x", maxAgentBody) }, 413, "exceeds the maximum size of"},
		{func(j *providers.Joining) { j.CSR, j.Machine = "", "" }, 422, `"field":"machine"`},
	} {
		wrong := joining
		r.change(&wrong)
		if status, body := c.post(bare, "/v1/join", wrong, nil); status != r.status || !strings.Contains(body, r.says) {
			t.Errorf("%d %s, want %d %s", status, body, r.status, r.says)
		}
	}
	if n := cluster.asked.Load(); n != 1 {
		t.Errorf("the cluster was asked %d times for one token that could be one", n)
	}
	var got providers.Enrolled
	if status, body := c.post(bare, "/v1/join", joining, &got); status != 200 || got.Provider != "node-1" {
		t.Fatalf("%d %s", status, body)
	}
	beat := providers.Heartbeat{Token: got.Token, GPUCode: providers.GPUCodeOf(got.Machine, devices), Devices: devices}
	var orders providers.Orders
	if status, body := c.post(c.client(string(key), got.Certificate), "/v1/heartbeat", beat, &orders); status != 200 || orders.State != "online" {
		t.Errorf("%d %s", status, body)
	}
	if log := c.log.String(); strings.Contains(log, "-token") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log says\n%s", log)
	}
}

// Strangers cannot wear the cluster out.
func TestAgentsJoinInTurn(t *testing.T) {
	c := newCounter(t)
	cluster := &oneToken{}
	c.enrollment.Cluster = cluster
	joining := providers.Joining{Token: "bad-token", CSR: csrOf(t, must(authority.NewKey())(t)), Machine: providers.MachineDigest("machine")}
	var all sync.WaitGroup
	for range 6 {
		client := c.client("", "")
		all.Go(func() {
			if status, body := c.post(client, "/v1/join", joining, nil); status != 401 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	if cluster.asked.Load() != 6 || cluster.most.Load() > maxConcurrentEnrollments {
		t.Errorf("asked %d times, up to %d at once", cluster.asked.Load(), cluster.most.Load())
	}
}
