package workspaces_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/models"
	"weir/policies"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/runtime"
)

// partProcess is the process of a part in a test.
type partProcess struct {
	key    []byte
	ended  *runtime.RunStatus
	status serving.Status
	silent bool        // it answers nothing
	lost   bool        // with its machine: it cannot be stopped
	waits  models.Text // for it, the start of the process waits
	cpu    time.Duration
}

// testParts are processes of parts that do what a test says, and speak the protocol.
type testParts struct {
	mu        sync.Mutex
	processes map[int64]*partProcess
	starts    int
	refused   error         // of a start
	computing chan struct{} // receives when a part is to compute
	compute   chan struct{} // lets it answer
}

func (p *testParts) of(state runtime.State) *partProcess {
	var id int64
	_ = json.Unmarshal(state, &id) // Start has written it
	return p.processes[id]
}

func (p *testParts) Start(_ context.Context, run int64, spec runtime.Spec, _ []string) (runtime.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state, err := json.Marshal(run)
	if p.refused != nil {
		return nil, p.refused
	}
	if p.processes[run] == nil {
		key, _ := hex.DecodeString(spec.Env[serving.KeyName]) // of the server
		p.processes[run] = &partProcess{key: key, status: serving.Status{Version: serving.Version}}
		p.starts++
	}
	return state, err
}

func (p *testParts) Poll(_ context.Context, state runtime.State) (runtime.RunStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.of(state); one != nil && one.ended == nil {
		if !one.waits.Empty() {
			return runtime.RunStatus{Stage: runtime.StagePulling, Message: one.waits}, nil
		}
		return runtime.RunStatus{CPU: one.cpu}, nil
	} else if one != nil {
		return *one.ended, nil
	}
	return runtime.RunStatus{Ended: true, ExitCode: -1}, nil
}

func (p *testParts) Stop(_ context.Context, state runtime.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.of(state); one != nil && !one.lost {
		one.ended = &runtime.RunStatus{Ended: true, ExitCode: -1}
	}
	return nil
}

func (p *testParts) Remove(_ context.Context, state runtime.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.processes, func(_ int64, one *partProcess) bool { return one == p.of(state) })
	return nil
}

func (p *testParts) List(context.Context) (list []runtime.Instance, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, one := range p.processes {
		state, err := json.Marshal(id)
		if err != nil {
			return nil, err
		}
		list = append(list, runtime.Instance{Workspace: id, State: state, Ended: one.ended != nil})
	}
	return list, nil
}

func (p *testParts) Signal(context.Context, runtime.State, syscall.Signal) (bool, error) {
	return false, nil
}

func (p *testParts) Log(runtime.State, int64, int) ([]byte, int64, error) {
	return nil, 0, fs.ErrNotExist
}

func (p *testParts) File(runtime.State, string, int64) ([]byte, error) { return nil, fs.ErrNotExist }

func (p *testParts) Refresh(context.Context, runtime.State, []models.Mount) error { return nil }

func (p *testParts) Address() string { return ":1" }

func (p *testParts) Dial(_ context.Context, state runtime.State) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.of(state)
	if one == nil || one.ended != nil || one.silent {
		return nil, errors.New("nothing listens")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	mine, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	theirs, err := listener.Accept()
	if err == nil {
		go p.serve(theirs, one)
	}
	return mine, err
}

// serve is the part's side of a connection.
func (p *testParts) serve(conn net.Conn, one *partProcess) {
	defer conn.Close()
	mine, theirs := make([]byte, 32), make([]byte, 64)
	if _, err := conn.Write(mine); err != nil {
		return
	}
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return
	}
	proof := hmac.New(sha256.New, one.key)
	proof.Write(slices.Concat([]byte("part"), theirs[:32], mine))
	if _, err := conn.Write(proof.Sum(nil)); err != nil {
		return
	}
	began := int64(0)
	defer func() { p.count(one, 0, -began) }()
	for {
		var sizes [8]byte
		if _, err := io.ReadFull(conn, sizes[:]); err != nil {
			return
		}
		frame := make([]byte, binary.LittleEndian.Uint32(sizes[:4])+binary.LittleEndian.Uint32(sizes[4:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		text := binary.LittleEndian.Uint32(sizes[:4])
		head, payload := p.answer(one, frame[:text], frame[text:], &began)
		answer := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
		answer = append(binary.LittleEndian.AppendUint32(answer, uint32(len(payload))), head...)
		if _, err := conn.Write(append(answer, payload...)); err != nil {
			return
		}
	}
}

// count counts what the process has begun and computes.
func (p *testParts) count(one *partProcess, begun, computing int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.status.Begun, one.status.Computing = one.status.Begun+begun, one.status.Computing+computing
}

// answer computes nothing: all tokens are equally probable, so the first one is generated. began is
// increased for each sequence of the connection.
func (p *testParts) answer(one *partProcess, head, sent []byte, began *int64) (answer, payload []byte) {
	var in struct {
		Op         string
		Tokens, At int
	}
	_ = json.Unmarshal(head, &in) // of the server
	if in.Op == "render" {        // by a template that names each role
		var request struct{ Messages []serving.Message }
		_ = json.Unmarshal(sent, &request) // of the server
		for _, m := range request.Messages {
			payload = append(payload, m.Role+":"+m.Content+"\n"...)
		}
		return []byte("{}"), payload
	}
	if in.Op == "begin" {
		*began++
		p.count(one, 1, 1)
		return []byte("{}"), nil
	}
	if in.Op == "forward" {
		p.computing <- struct{}{}
		<-p.compute
		answer, _ = json.Marshal(map[string]int{"tokens": in.Tokens, "at": in.At + in.Tokens})
		return answer, make([]byte, 4*256)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, _ = json.Marshal(one.status) // of numbers and texts
	return answer, nil
}

// testServed is a model of one part.
type testServed struct {
	mu      sync.Mutex
	writes  int
	failed  error // of Write
	endless bool  // writing goes on until it is canceled
	kept    serving.Generation
	files   string // state of the model's files
	broken  error  // of the model
	asked   models.DeviceQuery
	// rewritten is what files are after they change while the parts are written; empty: they do not.
	rewritten string
	swept     [][]int64
	linked    [][2]int64    // deployments that have the parts of another one
	lost      error         // of LinkParts
	hung      chan struct{} // until it is closed, the files of deployment 1 cannot be read; nil: they can
}

func (s *testServed) Plan(_ context.Context, _ policies.Actor, path models.FilePath, _ int64, _ models.ServedInput, on models.DeviceQuery) (
	models.ServedModel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = on
	return models.ServedModel{Path: path, Files: s.files, Hidden: 2, Vocabulary: 256, Context: 64, Task: models.TaskTextGeneration, TextPrompts: true,
		Plan: models.ModelPlan{Possible: true, MarginPercent: 10, Parts: []models.ModelPart{{First: "input", Last: "output", Total: 1 << 20}}}}, s.broken
}

func (s *testServed) Files(_ context.Context, d models.Deployment) (string, error) {
	if s.hung != nil && d.ID == 1 {
		<-s.hung
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files, nil
}

// change changes the files of the model; broken is why they cannot be served then.
func (s *testServed) change(files string, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.broken = files, broken
}

func (s *testServed) Write(ctx context.Context, _ models.Deployment) ([]models.WrittenPart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.endless {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, ctx.Err()
	}
	if s.rewritten != "" {
		s.files, s.rewritten = s.rewritten, ""
		return nil, models.Conflict("A file has changed while it was read.")
	}
	return []models.WrittenPart{{File: "part-1.safetensors", Size: 1}}, s.failed
}

func (s *testServed) LinkParts(d models.Deployment, of int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked = append(s.linked, [2]int64{d.ID, of})
	return s.lost
}

func (s *testServed) Generation(models.Deployment) (serving.Generation, error) {
	return s.kept, nil
}

func (s *testServed) Directory(models.Deployment, int64) string  { return "/" }
func (s *testServed) WriteWorker(models.Deployment, int64) error { return nil }
func (s *testServed) Remove(models.Deployment) error             { return nil }

func (s *testServed) Sweep(ctx context.Context, live func(context.Context) ([]int64, error)) error {
	ids, err := live(ctx)
	s.swept = append(s.swept, ids)
	return err
}

// testActors has the rights of actors in a test.
type testActors struct {
	err   error
	owner policies.Actor // of deployments, with its grants
}

func (a *testActors) RefreshActor(_ context.Context, actor policies.Actor) (policies.Actor, error) {
	if actor.User.ID == a.owner.User.ID {
		actor.Grants = a.owner.Grants
	}
	return actor, a.err
}

// deploymentWorld is a world in which the member deploys models.
type deploymentWorld struct {
	*world
	*testing.T
	parts  *testParts
	served *testServed
	actors *testActors
	id     int64
}

func newDeploymentWorld(t *testing.T, b *world) *deploymentWorld {
	t.Helper()
	w := &deploymentWorld{world: b, T: t, served: &testServed{files: "first"}, actors: &testActors{owner: b.actor},
		parts: &testParts{processes: map[int64]*partProcess{}, computing: make(chan struct{}, 8), compute: make(chan struct{})}}
	b.gpus(t, 1)
	b.environment(t, workspaces.EnvironmentInput{Name: "computing", Command: []string{"/bin/sleep", "600"}, Versions: map[string]string{"numpy": "2.0"}})
	b.Service.Parts, b.Service.Served, b.Service.Actors = w.parts, w.served, w.actors
	w.restart()
	return w
}

// restart gives the world another reconciler, as after a restart of the server.
func (w *deploymentWorld) restart() {
	w.restartWith(func(c *workspaces.ReconcilerConfig) {
		c.Parts, c.Served, c.FollowModel, c.MoveDeployment = w.parts, w.served, w.Service.FollowModel, w.Service.MoveDeployment
		c.MoveAfter = moveAfter
	})
}

func (w *deploymentWorld) deploy() {
	w.Helper()
	w.deployWith(workspaces.DeployInput{Cores: 10})
}

func (w *deploymentWorld) deployWith(in workspaces.DeployInput) {
	w.Helper()
	in.ProjectID, in.Path = w.project.ID, "/notebook/1/project_model/tiny"
	d, err := w.Deploy(w.ctx, w.actor, in)
	if err != nil {
		w.Fatal(err)
	}
	w.id = d.ID
}

// get is the deployment after a step.
func (w *deploymentWorld) get() workspaces.DeploymentSummary {
	w.Helper()
	_ = w.TickDeployments(w.ctx) // its errors are seen in the deployment
	d, err := w.ViewDeployment(w.ctx, w.actor, w.id)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// until steps the deployment until its only part is in a state; one that has ended is started again after a pause.
func (w *deploymentWorld) until(state models.PartState) {
	w.Helper()
	w.poll(w.T, "the part is "+string(state), func() bool {
		p := w.get().Parts[0]
		if p.State == models.PartWaiting && p.Failures > 0 {
			w.clock.Advance(time.Second)
		}
		return p.State == state
	})
}

// process is that of the only part of the deployment.
func (w *deploymentWorld) process() *partProcess {
	parts, err := w.store.Read(w.ctx).DeploymentParts(w.id)
	if err != nil {
		w.Fatal(err)
	}
	w.parts.mu.Lock()
	defer w.parts.mu.Unlock()
	return w.parts.processes[parts[0].ID]
}

// set changes what the part answers.
func (w *deploymentWorld) set(change func(*partProcess)) {
	one := w.process()
	w.parts.mu.Lock()
	defer w.parts.mu.Unlock()
	change(one)
}

func (w *deploymentWorld) serve() {
	w.Helper()
	w.deploy()
	w.load()
}

// computes lets the part answer all requests.
func (w *deploymentWorld) computes() {
	close(w.parts.compute)
	go func() {
		for range w.parts.computing {
		}
	}()
}

// loadedStatus is what a part answers that is loaded.
var loadedStatus = serving.Status{Ready: true, Progress: 100, Library: "numpy", Device: "cpu", Version: serving.Version, Busy: new(int64(0))}

// load lets the deployment serve.
func (w *deploymentWorld) load() {
	w.Helper()
	w.until(models.PartLoading)
	w.set(func(p *partProcess) { p.status = loadedStatus })
	w.poll(w.T, "the deployment serves", func() bool { return w.get().State == models.DeploymentServing })
}

// has reports whether a line of the history contains a text.
func (w *deploymentWorld) has(text string) bool {
	return slices.ContainsFunc(w.get().Events, func(e models.DeploymentEvent) bool { return strings.Contains(e.Message.String(), text) })
}
