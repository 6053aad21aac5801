package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/handlers"
	"weir/models"
)

// served is a deployment in a test.
type served struct {
	t  testing.TB
	m  member
	id int64
}

// writesModel writes a model to a directory, and returns its path.
func (m member) writesModel(s *server, project int64, name, config, tensors string) (dir string) {
	dir = fmt.Sprintf("/notebook/%d/project_model/%s", project, name)
	m.must("POST", fmt.Sprintf("/projects/%d/files/directories", project), map[string]any{"path": dir}, nil)
	s.writes(dir+"/config.json", config)
	s.writes(dir+"/model.safetensors", tensors)
	return dir
}

func (m member) deploy(t *testing.T, project int64, parts int, kind string) served {
	t.Helper()
	return m.deployModel(t, project, fmt.Sprintf("/notebook/%d/project_model/tiny", project), parts, kind, 64)
}

// deployModel deploys a model and waits until it serves; without context, it has the default.
func (m member) deployModel(t *testing.T, project int64, dir string, parts int, kind string, context int) served {
	t.Helper()
	var d handlers.Deployment
	m.must("POST", "/deployments", map[string]any{"project_id": project, "path": dir,
		"parts": parts, "service_type": kind, "cores": 10, "context": context, "batch": 2, "manual_updates": true}, &d)
	v := served{t, m, d.ID}
	v.serves()
	return v
}

// deploysAs deploys the model on two, four and three GPUs and compares each with the whole model.
// The last one goes on.
func (m member) deploysAs(t *testing.T, project int64, kind string, want handlers.Completion) (d served) {
	t.Helper()
	for _, n := range []int{2, 4, 3} {
		if d.id != 0 {
			m.must("POST", fmt.Sprintf("/deployments/%d/stop", d.id), nil, nil)
		}
		d = m.deploy(t, project, n, kind)
		if v := d.get(); len(v.Parts) != n || v.Demand.GPUs != int64(n) || v.ServiceType != cmp.Or(kind, "text-generation") {
			t.Errorf("%+v", v)
		}
		d.same(want)
		d.streams(want)
	}
	return d
}

func (d served) get() (v handlers.Deployment) {
	d.t.Helper()
	d.m.must("GET", fmt.Sprintf("/deployments/%d", d.id), nil, &v)
	return v
}

// serves waits until all parts are ready.
func (d served) serves() {
	d.t.Helper()
	eventually(d.t, starting, func() string {
		v := d.get()
		if v.State == models.DeploymentFailed {
			d.t.Fatalf("%+v", v)
		}
		for _, p := range v.Parts {
			if p.State != models.PartReady {
				return fmt.Sprintf("%+v", v)
			}
		}
		if v.State != models.DeploymentServing {
			return fmt.Sprintf("%+v", v)
		}
		return ""
	})
}

var completionRequest = map[string]any{"prompt": "one GPU is not enough", "max_tokens": 12, "temperature": 0, "top_p": 0.5, "logprobs": 5}

// asks sends a request, and reports whether it was served; every other status is a failure.
func (d served) asks() (c handlers.Completion, ok bool) {
	d.t.Helper()
	switch status := d.m.call("POST", fmt.Sprintf("/deployments/%d/v1/completions", d.id), completionRequest, &c); status {
	case http.StatusOK:
		return c, true
	case http.StatusServiceUnavailable, 0:
		return c, false
	default:
		d.t.Errorf("the status is %d", status)
		return c, false
	}
}

// changes returns the first completion that is another one than before. always reports that each request must
// be answered.
func (d served) changes(before handlers.Completion, always bool) (c handlers.Completion) {
	d.t.Helper()
	eventually(d.t, starting, func() string {
		ok := false
		if c, ok = d.asks(); !ok && always {
			d.t.Fatalf("a request was not answered: %+v", d.get())
		}
		if !ok || slices.Equal(c.Choices[0].TokenIDs, before.Choices[0].TokenIDs) {
			return fmt.Sprintf("%+v", d.get())
		}
		return ""
	})
	return c
}

// load asks again and again until it is told to rest: whatever is killed meanwhile, a request fails or is
// answered right.
func (d served) load(want handlers.Completion) (rest func()) {
	ctx, stop := context.WithCancel(d.t.Context())
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if c, ok := d.asks(); ok {
					d.equal(c, want)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() { stop(); asking.Wait() }
}

// same compares a completion with that of the whole model.
func (d served) same(want handlers.Completion) {
	d.t.Helper()
	c, ok := d.asks()
	if !ok {
		d.t.Fatalf("it is not served: %+v", d.get())
	}
	d.equal(c, want)
}

// equal compares a completion with another one of the same model.
func (d served) equal(c, want handlers.Completion) {
	d.t.Helper()
	got, whole := c.Choices[0], want.Choices[0]
	if got.Text != whole.Text || !slices.Equal(got.TokenIDs, whole.TokenIDs) || len(got.TokenIDs) != 12 {
		d.t.Errorf("%d generates %v, not %v", d.id, got.TokenIDs, whole.TokenIDs)
	}
	for i, top := range whole.Logprobs.TopLogprobs {
		for token, p := range top {
			if q, ok := got.Logprobs.TopLogprobs[i][token]; !ok || math.Abs(p-q) > 1e-4 {
				d.t.Errorf("token %s at %d has %g, not %g", token, i, q, p)
			}
		}
	}
}

// streams compares a completion in events with that of the whole model.
func (d served) streams(want handlers.Completion) {
	d.t.Helper()
	request := maps.Clone(completionRequest)
	request["stream"] = true
	status, body, err := d.m.raw("POST", fmt.Sprintf("/deployments/%d/v1/completions", d.id), request)
	if err != nil || status != http.StatusOK {
		d.t.Fatalf("%d: %s, %v", status, body, err)
	}
	var ids []int32
	text, finish := "", ""
	lines := strings.Split(strings.TrimSpace(string(body)), "\n\n")
	for _, line := range lines[:len(lines)-1] {
		var event handlers.CompletionEvent
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &event); err != nil || finish != "" {
			d.t.Fatalf("%q: %v", line, err)
		}
		delta := event.Choices[0]
		ids, text = append(ids, delta.TokenIDs...), text+delta.Text
		if delta.FinishReason != nil {
			finish = *delta.FinishReason
		}
	}
	whole := want.Choices[0]
	if !slices.Equal(ids, whole.TokenIDs) || text != whole.Text || finish != whole.FinishReason || lines[len(lines)-1] != "data: [DONE]" {
		d.t.Errorf("it streams %v, %q, %s: %s", ids, text, finish, body)
	}
}

// stops checks that a completion ends before a text of the whole model's completion.
func (d served) stops(want handlers.Completion) {
	d.t.Helper()
	whole := []rune(want.Choices[0].Text)
	stop := string(whole[len(whole)/2:][:2])
	request, c := maps.Clone(completionRequest), handlers.Completion{}
	request["stop"], request["n"] = []string{"no such text", stop}, 1
	if status := d.m.call("POST", fmt.Sprintf("/deployments/%d/v1/completions", d.id), request, &c); status != http.StatusOK {
		d.t.Fatalf("the status is %d", status)
	}
	before, _, _ := strings.Cut(string(whole), stop)
	if got := c.Choices[0]; got.Text != before || got.FinishReason != "stop" || len(got.TokenIDs) > len(want.Choices[0].TokenIDs) {
		d.t.Errorf("before %q it generates %q, %s, not %q", stop, got.Text, got.FinishReason, before)
	}
}

// tokenized is a deployment of the same model with a tokenizer.json whose tokens are the bytes.
func (m member) tokenized(t *testing.T, s *server, project int64, dir string) served {
	t.Helper()
	text, err := os.ReadFile("../workspaces/deployments/tokenizer/testdata/bytes.json")
	if err != nil {
		t.Fatal(err)
	}
	s.writes(dir+"/tokenizer.json", string(text))
	s.writes(dir+"/tokenizer_config.json", chatConfig)
	return m.deploy(t, project, 1, "")
}

// chatConfig has a template that makes of a user's message the message itself.
const chatConfig = `{"bos_token":{"content":""},"chat_template":"{% if messages[0].role == 'system' %}{{ raise_exception('no system, please') }}` +
	`{% endif %}\n\t{%- for m in messages %}{{ bos_token + m['content'] }}{% endfor %}{% if not add_generation_prompt %}never{% endif %}"}`

// chats compares the answer in a conversation with the whole model's completion.
func (d served) chats(want handlers.Completion) {
	d.t.Helper()
	path := fmt.Sprintf("/deployments/%d/v1/chat/completions", d.id)
	parts := []map[string]any{{"type": "text", "text": "one GPU is not enough"}}
	request := map[string]any{"messages": []map[string]any{{"role": "user", "content": parts}}, "max_completion_tokens": 12, "temperature": 0,
		"logprobs": true, "top_logprobs": 2, "frequency_penalty": 0, "stream_options": map[string]any{"include_usage": true}}
	var c handlers.ChatCompletion
	d.m.must("POST", path, request, &c)
	got, whole := c.Choices[0], want.Choices[0]
	if got.Message != (handlers.AssistantMessage{Role: "assistant", Content: whole.Text}) || c.Usage != want.Usage || got.FinishReason != "length" ||
		len(got.Logprobs.Content) != 12 || len(got.Logprobs.Content[0].TopLogprobs) != 2 {
		d.t.Errorf("in a conversation it generates %+v, not %+v", c, want)
	}
	request["stream"] = true
	status, body, err := d.m.raw("POST", path, request)
	if err != nil || status != http.StatusOK {
		d.t.Fatalf("%d: %s, %v", status, body, err)
	}
	text, lines := "", strings.Split(strings.TrimSpace(string(body)), "\n\n")
	for i, line := range lines[:len(lines)-1] {
		var event handlers.ChatEvent
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &event); err != nil || (event.Choices[0].Delta.Role != "") != (i == 0) {
			d.t.Fatalf("%q: %v", line, err)
		}
		text += event.Choices[0].Delta.Content
	}
	if text != whole.Text || len(lines) != 1+12+1+1 || lines[len(lines)-1] != "data: [DONE]" {
		d.t.Errorf("in a conversation it streams %q: %s", text, body)
	}
	request["messages"] = []map[string]any{{"role": "system", "content": "be kind"}}
	status, body, err = d.m.raw("POST", path, request)
	if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(string(body), "no system, please") {
		d.t.Errorf("%d: %s, %v", status, body, err)
	}
}

// refusesChat checks that a model without a template has no conversations.
func (d served) refusesChat() {
	d.t.Helper()
	request := map[string]any{"messages": []map[string]any{{"role": "user", "content": "hello"}}}
	if status := d.m.call("POST", fmt.Sprintf("/deployments/%d/v1/chat/completions", d.id), request, nil); status != http.StatusConflict {
		d.t.Errorf("the status is %d", status)
	}
}

// workers are the processes of parts, by their program and the mark of their sandbox.
func (s *server) workers() (list []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range all {
		pid, _ := strconv.Atoi(e.Name()) // 0: no process
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !strings.HasPrefix(string(text), "python3\x00/deployment/worker.py") {
			continue
		}
		if vars, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && strings.Contains(string(vars), s.dir+"/") {
			list = append(list, pid)
		}
	}
	return list
}

// A model whose files change is deployed anew by itself. Each request to its address is
// answered by the one or the other version, and none is lost.
func TestDeploymentFollowsItsModel(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:4"})
	team := s.team("servers", resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 16_000, MemoryMiB: 32_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	dir := ada.writesModel(s, team.Project, "tiny", decoderConfig, decoder(1))
	s.shell(ada.token).says([]string{"tiny", "serving"}, "deploy", "--parts", "2", "--cores", "10", "--context", "64", "--batch", "2",
		"--project", fmt.Sprint(team.Project), dir)
	address := served{t, ada, 1}
	old, ok := address.asks()
	if !ok {
		t.Fatalf("it is not served: %+v", address.get())
	}
	cut := address.get().Parts[0].Last
	s.writes(dir+"/config.json", strings.Replace(decoderConfig, `"num_hidden_layers":4`, `"num_hidden_layers":6`, 1))
	s.writes(dir+"/model.safetensors", decoderOf(32, 64, 6, 3))
	changed := address.changes(old, true)
	update := served{t, ada, 2}
	if v := update.get(); v.State != models.DeploymentServing || v.FirstID != 1 || len(v.Parts) != 2 || v.Parts[0].Last == cut {
		t.Errorf("it was cut after %s: %+v", cut, v)
	}
	update.same(changed)
	address.same(changed)
	eventually(t, gone, func() string {
		if v := address.get(); v.State != models.DeploymentStopped || len(s.workers()) != 2 {
			return fmt.Sprintf("%v of %+v", s.workers(), v)
		}
		return ""
	})
	s.writes(dir+"/model.safetensors", decoderOf(32, 64, 6, 4))
	var stopped handlers.Deployment
	ada.must("POST", "/deployments/1/update?update_strategy=recreate", nil, &stopped)
	if stopped.ID != 2 || stopped.State != models.DeploymentStopping {
		t.Errorf("%+v", stopped)
	}
	changed = address.changes(changed, false)
	if v := update.get(); v.State != models.DeploymentStopped || v.CurrentID != 3 {
		t.Errorf("%+v", v)
	}
	served{t, ada, 3}.same(changed)
	ada.must("POST", "/deployments/1/stop", nil, &stopped)
	if stopped.ID != 3 || stopped.State != models.DeploymentStopping {
		t.Errorf("by its first address, %+v was stopped", stopped)
	}
	update = served{t, ada, 3}
	eventually(t, gone, func() string {
		if v := update.get(); v.State != models.DeploymentStopped {
			return fmt.Sprintf("%+v", v)
		}
		return ""
	})
}

// tensorLibrary is what the parts compute with on this machine.
func tensorLibrary() string {
	if exec.Command("/usr/bin/python3", "-c", "import torch").Run() == nil {
		return "torch"
	}
	return "numpy"
}

// A model generates the same on one, two, three and four GPUs, cut between layers or by attention
// heads, and also after its parts and then the server were killed with kill -9; meanwhile
// requests fail and are never wrong.
func TestDeployment(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:4"})
	limit := resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 32_000, MemoryMiB: 64_000, StorageMiB: 1000}
	team := s.team("servers", limit, "ada")
	ada := team.Members[0]
	dir := ada.writesModel(s, team.Project, "tiny", decoderConfig, decoder(1))
	sh := s.shell(ada.token)
	sh.says([]string{"tiny", "serving", tensorLibrary()}, "deploy", "--manual-updates", "--project", fmt.Sprint(team.Project), "--parts", "1", "--cores", "10",
		"--context", "64", "--batch", "2", dir)
	whole := served{t, ada, 1}
	sh.says([]string{"tiny", "serving"}, "deployments")
	want, ok := whole.asks()
	if !ok {
		t.Fatalf("it is not served: %+v", whole.get())
	}
	three := ada.deploysAs(t, team.Project, "", want)
	three.stops(want)
	heads := ada.deploysAs(t, team.Project, "tensor-parallel", want)
	heads.stops(want)
	text := ada.tokenized(t, s, team.Project, dir)
	text.same(want)
	text.streams(want)
	text.stops(want)
	text.chats(want)
	whole.refusesChat()
	three.measures(3)

	var pids []int
	eventually(t, gone, func() string {
		if pids = s.workers(); len(pids) == 1+3+3+1 {
			return ""
		}
		return fmt.Sprint(pids)
	})
	rest := three.load(want)
	defer rest()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	eventually(t, starting, func() string {
		c, ok := three.asks()
		if !ok {
			return fmt.Sprintf("%+v", three.get())
		}
		three.equal(c, want)
		return ""
	})
	for _, d := range []served{three, heads} {
		d.serves()
		d.same(want)
		for _, p := range d.get().Parts {
			if p.Restarts != 1 {
				t.Errorf("%d restarts", p.Restarts)
			}
		}
	}
	whole.serves()
	before := s.workers()
	s.kill()
	s.start()
	three.serves()
	rest()
	three.same(want)
	heads.serves()
	heads.same(want)
	after := s.workers()
	if slices.Sort(before); !slices.Equal(before, slices.Sorted(slices.Values(after))) {
		t.Errorf("the processes were %v and are %v", before, after)
	}
	ada.stopsDeployments(t, s)
}

// stopsDeployments stops all deployments and waits until no process of them is left.
func (m member) stopsDeployments(t *testing.T, s *server) {
	t.Helper()
	for _, d := range list[handlers.Deployment](m.api, "/deployments?state=live") {
		m.must("POST", fmt.Sprintf("/deployments/%d/stop", d.ID), nil, nil)
	}
	eventually(t, gone, func() string {
		for _, d := range list[handlers.Deployment](m.api, "/deployments") {
			if d.State != models.DeploymentStopped {
				return fmt.Sprintf("%+v", d)
			}
		}
		if left := s.workers(); len(left) > 0 {
			return fmt.Sprintf("%v are left", left)
		}
		return ""
	})
}
