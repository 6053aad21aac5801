package handlers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"weir/pool/authority"
	"weir/pool/providers"
)

// hostileValues are values in the place of those that an agent reports.
var hostileValues = []any{nil, -1, 0, int64(1) << 62, -(int64(1) << 62), 1.5, 1e300, true, "", "x", "\x00", "\xff\xfe", strings.Repeat("x", 10_000), "'; DROP TABLE devices; --",
	[]any{}, []any{nil}, map[string]any{}, map[string]any{"uuid": "GPU-x"}, "-9223372036854775808", strings.Repeat("[", 2000)}

// mutate replaces some of the values below v.
func mutate(r *rand.Rand, v any) any {
	if r.IntN(12) == 0 {
		return hostileValues[r.IntN(len(hostileValues))]
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if name != "token" && name != "code" {
				v[name] = mutate(r, value)
			}
		}
	case []any:
		for i := range v {
			v[i] = mutate(r, v[i])
		}
		if len(v) > 0 && r.IntN(6) == 0 {
			v = append(v, v[r.IntN(len(v))]) // twice the same
		}
		return v
	}
	return v
}

// mutated is a message as JSON, with hostile values.
func mutated(t *testing.T, r *rand.Rand, message any) string {
	t.Helper()
	var tree any
	if err := json.Unmarshal(must(json.Marshal(message))(t), &tree); err != nil {
		t.Fatal(err)
	}
	return string(must(json.Marshal(mutate(r, tree)))(t))
}

// Whatever an agent with a certificate, or somebody with a code, reports is taken or refused:
// nothing makes the server fail, and afterwards the agent is served as before.
func TestHostileAgents(t *testing.T) {
	c := newCounter(t)
	digest := providers.MachineDigest("machine")
	devices := []providers.DeviceReport{
		{UUID: "GPU-x", Model: "NVIDIA H200", MemoryMiB: 143771, Sharing: "mig", MIGProfiles: []string{"1g.18gb"}, Peers: []string{"GPU-y"}, PCIBusID: "0000:01:00.0"},
		{UUID: "MIG-x", Model: "NVIDIA H200", MemoryMiB: 18000, Parent: "GPU-x", Profile: "1g.18gb", Cores: 14},
		{UUID: "GPU-y", Index: 1, Minor: 1, Model: "NVIDIA H200", MemoryMiB: 143771, ECC: "on", Trouble: "XID 79"}}
	gpuCode := providers.GPUCodeOf(digest, devices)
	code, _, err := c.enrollment.Authorize(t.Context(), c.root, providers.AuthorizeInput{GPUCode: gpuCode})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(29, 10))
	bare, counts := c.client("", ""), map[string]int{}
	post := func(client *http.Client, path, body string, out any) int {
		status, answer := c.post(client, path, body, out)
		counts[fmt.Sprint(path, " ", status)]++
		if status >= 500 || strings.Contains(answer, "json:") || strings.Contains(answer, "unmarshal") {
			t.Errorf("%s: %d %.300s\nfor %.2000s", path, status, answer, body)
		}
		return status
	}
	key := must(authority.NewKey())(t)
	redemption := providers.Redemption{Code: code, CSR: csrOf(t, key), Name: "node", Machine: digest, Devices: devices}
	for range 200 {
		wrong := redemption
		wrong.Code = "W-" + code // is refused last
		post(bare, "/v1/redeem", mutated(t, r, wrong), nil)
	}
	var got providers.Enrolled
	if status, body := c.post(bare, "/v1/redeem", redemption, &got); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	agent := c.client(string(key), got.Certificate)
	beat := providers.Heartbeat{Token: got.Token, GPUCode: gpuCode, Devices: devices,
		Samples: providers.Samples{{UUID: "GPU-x", Utilisation: 50, MemoryUsedMiB: 100, Temperature: 50, PowerMW: 1000, Processes: []providers.Process{{PID: 1, Name: "python", MemoryMiB: 5}}}}}
	for range 600 {
		var orders providers.Orders
		if status := post(agent, "/v1/heartbeat", mutated(t, r, beat), &orders); status == 200 && orders.Token != "" {
			beat.Token = orders.Token
		}
		if r.IntN(10) == 0 {
			post(agent, "/v1/renew", mutated(t, r, providers.Renewal{CSR: "x", Token: beat.Token}), nil)
		}
	}
	t.Logf("%v", counts)
	var orders providers.Orders
	if status, body := c.post(agent, "/v1/heartbeat", beat, &orders); status != 200 || orders.Token == "" {
		t.Errorf("afterwards: %d %s", status, body)
	}
	if strings.Contains(c.log.String(), "level=ERROR") {
		t.Errorf("the log says\n%.3000s", c.log)
	}
}
