package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store/storetest"
	"weir/pool/authority"
	"weir/pool/providers"
)

// quick lets agents report often, so that tests need not wait long.
func quick(o options) options {
	o.args = append(o.args, "--agent-heartbeat", "200ms")
	return o
}

// enrolled is a machine whose agent speaks.
func enrolled(t testing.TB, s *server) *machine {
	t.Helper()
	m := newMachine(t, s, "node")
	m.start(s.authorize(m.gpuCode()))
	s.beats()
	return m
}

func TestAgentEnrols(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, quick(o))
		m := newMachine(t, s, "node")
		gpuCode := m.gpuCode()
		if code, stdout, _ := weir(t, "", m.settings(), "agent"); code != 0 || !strings.Contains(stdout, gpuCode) || !strings.Contains(stdout, "2 × NVIDIA H100") {
			t.Errorf("exit code %d, and it says\n%s", code, stdout)
		}
		code := s.authorize(gpuCode)
		m.start(code)
		p := s.beats()
		if p.GPUCode != gpuCode || p.Name == "" || p.Address != "127.0.0.1" {
			t.Errorf("the provider is %+v", p)
		}
		devices, err := s.books().DevicesOf(p.ID)
		if err != nil || len(devices) != 2 || !devices[0].Present {
			t.Errorf("%d devices, %v", len(devices), err)
		}

		thief := newMachine(t, s, "node") // the same machine, with another key
		thief.start(code)
		if exit := thief.wait(); exit != 1 || !strings.Contains(thief.log.String(), "has already been used") {
			t.Errorf("with a code that was used: exit code %d", exit)
		}

		if exit := m.stop(); exit != 0 {
			t.Errorf("asked to end, the agent ended with exit code %d", exit)
		}
		m.start(code) // as a unit file would, with the code that it has used
		s.beats()
		s.stop()
		s.start() // the listener comes back at another port
		s.beats()
		s.holdsRules(1)
	})
}

// An administrator authorises, accepts changed GPUs and revokes over REST, and
// the agent feels each at its next word.
func TestAgentAdministered(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{}))
	admin := s.api(s.admin())
	m := newMachine(t, s, "node")
	two := m.gpuCode()
	var made struct {
		Code string `json:"code"`
	}
	admin.must("POST", "/pool/authorizations", map[string]any{"gpu_code": strings.ToLower(two), "name": "rack 7"}, &made)
	m.start(made.Code)
	p := s.beats()
	if p.Name != "rack 7" {
		t.Errorf("the provider is called %s", p.Name)
	}
	m.stop()
	m.gpus = "h100:3"
	m.start("")
	p = s.awaitProvider(models.ProviderPending, time.Now())
	if p.GPUCode != two || p.ReportedCode == "" || p.Reason.Empty() {
		t.Errorf("with another GPU it is %+v", p)
	}
	path := fmt.Sprintf("/pool/providers/%d", p.ID)
	var refusal problem
	if status := admin.call("POST", path+"/drain", nil, nil); status != http.StatusOK {
		t.Errorf("draining a provider that waits: %d", status)
	}
	admin.must("POST", path+"/resume", nil, nil)
	admin.must("POST", path+"/accept", nil, nil)
	if p := s.beats(); p.GPUCode == two || p.ReportedCode != "" {
		t.Errorf("accepted it is %+v", p)
	}
	if status := admin.call("POST", path+"/accept", nil, &refusal); status != http.StatusConflict {
		t.Errorf("accepting again: %d %+v", status, refusal)
	}
	admin.must("POST", path+"/revoke", nil, nil)
	if exit := m.wait(); exit != 3 || !strings.Contains(m.log.String(), "revoked by an administrator") {
		t.Errorf("revoked, the agent ended with exit code %d", exit)
	}
	s.awaitProvider(models.ProviderLost, time.Time{})
	s.holdsRules(0)
}

// Whichever of both dies at whichever step, one agent and one provider are
// there afterwards, and it is not taken for two.
func TestAgentFailpoints(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"agent.key", "agent.redeemed", "agent.enrolled", "agent.beat"} {
		t.Run(step, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, o options) {
				s := newServer(t, quick(o))
				m := newMachine(t, s, "node")
				code := s.authorize(m.gpuCode())
				m.start(code, "WEIR_FAILPOINT="+step)
				if exit := m.wait(); exit != -1 {
					t.Fatalf("the agent ended with exit code %d and not at %s", exit, step)
				}
				m.start(code)
				s.beats()
				m.kill()
				m.start("")
				s.beats()
				s.holdsRules(1)
			})
		})
	}
	for _, step := range []string{"redeem.committed", "beat.committed"} {
		t.Run(step, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, o options) {
				s := newServer(t, quick(o))
				m := newMachine(t, s, "node")
				code := s.authorize(m.gpuCode())
				s.stop()
				s.start("WEIR_FAILPOINT=" + step)
				m.start(code)
				if exit := s.wait(); exit != -1 {
					t.Fatalf("the server ended with exit code %d and not at %s", exit, step)
				}
				s.start()
				s.beats()
				s.holdsRules(1)
			})
		})
	}
}

// An agent that is cut off is lost, and back as soon as it is heard. What it
// had said into the cut arrives late, and does it no harm.
func TestAgentPartition(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, quick(o))
		w := newWire(t, s)
		m := newMachine(t, s, "node")
		m.server = w.url()
		m.start(s.authorize(m.gpuCode()))
		before := s.beats()
		w.set(true)
		lost := s.awaitProvider(models.ProviderLost, time.Time{})
		if lost.Reason.Empty() {
			t.Error("nobody is told why it is lost")
		}
		w.set(false)
		if after := s.beats(); after.ID != before.ID {
			t.Errorf("it came back as %d", after.ID)
		}
		s.beats()
		if !m.running() {
			t.Error("the agent has ended")
		}
		s.holdsRules(1)
	})
}

// Agents live with a clock that is wrong.
func TestAgentClockIsWrong(t *testing.T) {
	t.Parallel()
	for _, offset := range []string{"1h", "-1h"} {
		t.Run(offset, func(t *testing.T) {
			s := newServer(t, quick(options{args: []string{"--agent-certificate-lifetime", "1m"}}))
			m := newMachine(t, s, "node")
			m.start(s.authorize(m.gpuCode()), "WEIR_CLOCK_OFFSET="+offset)
			s.beats()
			s.holdsRules(1)
		})
	}
}

// A certificate is renewed while it is used, for a new key.
func TestAgentRenews(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{args: []string{"--agent-certificate-lifetime", "1m"}}))
	m := enrolled(t, s)
	live, err := storetest.LiveAgents(s.books())
	if err != nil || len(live) != 1 {
		t.Fatalf("%d agents, %v", len(live), err)
	}
	eventually(t, ready, func() string {
		now, err := s.books().Agent(live[0].ID)
		if err != nil || now.Serial == live[0].Serial || now.KeyHash == live[0].KeyHash || now.NextSerial != "" {
			return fmt.Sprintf("the certificate is still %s, next is %q, %v", now.Serial, now.NextSerial, err)
		}
		return ""
	})
	m.kill()
	m.start("")
	s.beats()
	s.holdsRules(1)
}

// A state directory that was copied and runs twice shuts both out.
func TestAgentCopied(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, quick(o))
		m := enrolled(t, s)
		m.stop()
		other := m.copied()
		m.start("")
		other.start("")
		for _, agent := range []*machine{m, other} {
			if exit := agent.wait(); exit != 3 {
				t.Errorf("one of both ended with exit code %d", exit)
			}
		}
		p := s.awaitProvider(models.ProviderLost, time.Time{})
		if !strings.Contains(p.Reason.String(), "two agents") || !strings.Contains(m.log.String()+other.log.String(), "two agents") {
			t.Errorf("the reason is %s", p.Reason)
		}
		s.holdsRules(0)
		m.start(s.authorize(p.GPUCode)) // it is let in again with a new code
		if again := s.beats(); again.ID != p.ID {
			t.Errorf("it came back as %d", again.ID)
		}
		other.start("")
		if exit := other.wait(); exit != 3 {
			t.Errorf("the copy ended with exit code %d", exit)
		}
		s.beats()
		s.holdsRules(1)
	})
}

// stolen is what somebody has who has read an agent's state.
type stolen struct {
	client *http.Client
	url    string
	beat   providers.Heartbeat
}

func (m *machine) steal() stolen {
	m.t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.dir, "agent.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	var state struct {
		Authority, Token string
		Current          struct{ Key, Certificate string }
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		m.t.Fatal(err)
	}
	config, err := authority.AgentTLS([]byte(state.Current.Certificate), []byte(state.Current.Key), []byte(state.Authority), time.Now)
	if err != nil {
		m.t.Fatal(err)
	}
	address, err := m.s.agentsAddress()
	if err != nil {
		m.t.Fatal(err)
	}
	_, stdout, _ := weir(m.t, "", append(m.settings(), "WEIR_STATE_DIR="+m.t.TempDir()), "agent", "--output", "json")
	beat := providers.Heartbeat{Token: state.Token}
	if err := json.Unmarshal([]byte(stdout), &beat); err != nil {
		m.t.Fatal(err)
	}
	return stolen{&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: time.Minute}, address, beat}
}

func (x stolen) say(t *testing.T, b providers.Heartbeat) (int, providers.Orders) {
	t.Helper()
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.client.Post(x.url+"/v1/heartbeat", "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var o providers.Orders
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, o
}

// A beat that is said again word for word changes nothing; who has the key and
// insists shuts the agent out.
func TestAgentBeatReplayed(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{}))
	m := enrolled(t, s)
	m.stop()
	x := m.steal()
	m.start("")
	s.beats()
	for range 3 {
		if status, o := x.say(t, x.beat); status != http.StatusOK || o.Confirm == "" || o.Token != "" {
			t.Errorf("the replayed beat is answered %d %+v", status, o)
		}
	}
	s.beats()
	s.holdsRules(1)
	eventually(t, ready, func() string { // the agent speaks between the two
		_, o := x.say(t, x.beat)
		b := x.beat
		b.Confirm = o.Confirm
		if status, _ := x.say(t, b); status != http.StatusForbidden {
			return fmt.Sprint("confirmed, it is answered ", status)
		}
		return ""
	})
	if exit := m.wait(); exit != 3 {
		t.Errorf("the agent ended with exit code %d", exit)
	}
	s.holdsRules(0)
}

// The portal speaks for its own machine as an agent would.
func TestOwnGPUsAreMeasured(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	eventually(t, ready, func() string {
		states, err := s.books().DeviceStates()
		if err != nil || len(states) != 8 {
			return fmt.Sprintf("%d devices were measured, %v", len(states), err)
		}
		return ""
	})
	if _, ok := s.provider(); ok {
		t.Error("an agent is said to speak for it")
	}
}

func TestAgentsListenerRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{}))
	m := enrolled(t, s)
	x := m.steal()
	large := x.beat
	large.Token = strings.Repeat("x", 9<<20)
	if status, _ := x.say(t, large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("9 MiB are answered %d", status)
	}
	bare := stolen{&http.Client{Transport: &http.Transport{TLSClientConfig: x.client.Transport.(*http.Transport).TLSClientConfig.Clone(), DisableKeepAlives: true}}, x.url, x.beat}
	bare.client.Transport.(*http.Transport).TLSClientConfig.Certificates = nil
	if status, _ := bare.say(t, x.beat); status != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d", status)
	}
	code, _, stderr := weir(t, "", append(s.settings(), "WEIR_DATA_DIR="+t.TempDir()), "serve", "--listen", "127.0.0.1:0",
		"--agents-listen", strings.TrimPrefix(x.url, "https://"))
	if code != 1 || !strings.Contains(stderr, "--agents-listen") {
		t.Errorf("at a taken address: exit code %d, and it says %s", code, stderr)
	}
	s.beats()
}
