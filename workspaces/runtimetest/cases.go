package runtimetest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/idleness"
	"weir/workspaces/runtime"
)

const home = "/home/jovyan"

func testNotebook(t *testing.T, b *bench) {
	state := b.start(t, b.notebook(t, 1))
	s := b.running(t, state)
	if s.Progress != 100 {
		t.Errorf("running at %d percent", s.Progress)
	}
	if code, body := Call(t, s.Endpoint, token, "GET", "/api/status", ""); code != http.StatusOK {
		t.Errorf("with the token: %d %s", code, body)
	}
	for _, wrong := range []string{"", "wrong"} {
		if code, body := Call(t, s.Endpoint, wrong, "GET", "/api/contents", ""); code != http.StatusForbidden {
			t.Errorf("with token %q: %d %s", wrong, code, body)
		}
	}
	if code, body := Call(t, s.Endpoint, token, "POST", "/api/kernels", "{}"); code != http.StatusCreated {
		t.Errorf("starting a kernel: %d %s", code, body)
	}
	if again := b.running(t, state); strings.Contains(again.LogTail, token) {
		t.Error("the log that people see holds the token")
	}
}

// testActivity finds work where there is some: not in an open tab or its connection to
// a kernel, but in code, at a terminal and in what runs in the background.
func testActivity(t *testing.T, b *bench) {
	at := b.running(t, b.start(t, b.notebook(t, 12))).Endpoint
	read := func() idleness.Observation {
		o, err := runtime.ReadActivity(t.Context(), at, token)
		if err != nil {
			t.Fatal(err)
		}
		o.At = time.Now()
		return o
	}
	if o := read(); o.Busy || o.Executed != nil || o.Typed != nil {
		t.Errorf("a new server: %+v", o)
	}
	if _, err := runtime.ReadActivity(t.Context(), at, "wrong"); err == nil {
		t.Error("without the token")
	}
	Call(t, at, token, "POST", "/api/kernels", "{}")
	defer func() {
		if t.Failed() {
			_, kernels := Call(t, at, token, "GET", "/api/kernels", "")
			t.Logf("activity: %+v; kernels: %s", read(), kernels)
		}
	}()
	kernel := Connect(t, at, token)
	kernel.Execute(t.Context(), t, "1")
	first := read()
	if first.Executed == nil || *first.Executed > time.Minute {
		t.Fatalf("after a cell: %+v", first)
	}
	kernel.Execute(t.Context(), t, "held = b'x' * (64 << 20)")
	if grown := read().MemoryBytes - first.MemoryBytes; grown < 48<<20 || grown > 96<<20 {
		t.Errorf("64 MiB more are %d bytes beside %d", grown, first.MemoryBytes)
	}
	done := make(chan string)
	go func() {
		done <- kernel.Execute(t.Context(), t, "import os, time\nwhile not os.path.exists('/tmp/end'): time.sleep(0.01)")
	}()
	b.eventually(t, "executing", func() bool { o := read(); return o.Busy && o.BusyKernels == 1 && o.Kernels == 1 })
	kernel2 := Connect(t, at, token) // a second tab
	if !read().Busy {
		t.Error("a connection makes an executing kernel idle")
	}
	var terminal struct{ Name string }
	if _, body := Call(t, at, token, "POST", "/api/terminals", ""); json.Unmarshal([]byte(body), &terminal) != nil || terminal.Name == "" {
		t.Fatalf("terminal: %s", body)
	}
	shell := ConnectTerminal(t, at, token, terminal.Name)
	shell.Type(t, "(while :; do :; done) & touch /tmp/end\n")
	<-done
	b.eventually(t, "idle", func() bool { return !read().Busy })
	before := read()
	if before.Typed == nil || *before.Typed > time.Minute {
		t.Errorf("after typing: %+v", before)
	}
	b.eventually(t, "computing", func() bool {
		now := read()
		_, signal := idleness.Work(&before, now)
		return now.CPU-before.CPU > time.Second && signal == idleness.Processes
	})
	// What a shell prints counts as use of its terminal: the end of the job and the prompt
	// are awaited. The quotes tell the prompt from what was typed.
	shell.Type(t, "kill %1; wait; PS1='qui''et> '\n")
	shell.Until(t, "quiet> ")
	var quiet idleness.Observation
	b.eventually(t, "quiet", func() bool {
		before, quiet = quiet, read()
		return !before.At.IsZero() && quiet.CPU-before.CPU < quiet.At.Sub(before.At)/20
	})
	ages := *quiet.Executed + *quiet.Typed
	for range 3 { // what an open tab asks, and that it connects again
		for _, path := range []string{"/api/kernels", "/api/sessions", "/api/terminals", "/api/contents"} {
			Call(t, at, token, "GET", path, "")
		}
		Connect(t, at, token)
		ConnectTerminal(t, at, token, terminal.Name)
	}
	kernel2.Info(t.Context(), t)
	if o := read(); o.Busy || *o.Executed+*o.Typed < ages {
		t.Errorf("open tabs count as work: %+v", o)
	}
}

func testMounts(t *testing.T, b *bench) {
	spec := b.notebook(t, 2)
	own, public := b.Share(t), b.Share(t)
	if err := os.WriteFile(filepath.Join(public, "given.txt"), []byte("for all"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []models.Mount{
		{Source: public, Target: home + "/public", ReadOnly: true},
		{Source: own, Target: home},
	}
	s := b.running(t, b.start(t, spec))
	if code, body := Call(t, s.Endpoint, token, "PUT", "/api/contents/mine.txt", textFile("written inside")); code != http.StatusCreated {
		t.Errorf("writing to a read-write mount: %d %s", code, body)
	}
	if got, _ := os.ReadFile(filepath.Join(own, "mine.txt")); string(got) != "written inside" {
		t.Errorf("the share has %q", got)
	}
	if code, body := Call(t, s.Endpoint, token, "GET", "/api/contents/public/given.txt", ""); code != http.StatusOK ||
		!strings.Contains(body, "for all") {
		t.Errorf("reading a read-only mount: %d %s", code, body)
	}
	for _, file := range []string{"new.txt", "given.txt"} {
		if code, body := Call(t, s.Endpoint, token, "PUT", "/api/contents/public/"+file, textFile("no")); code < 400 {
			t.Errorf("writing %s to a read-only mount: %d %s", file, code, body)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(public, "given.txt")); string(got) != "for all" {
		t.Errorf("the read-only share was changed to %q", got)
	}
}

func testStartTwice(t *testing.T, b *bench) {
	spec := b.script(t, 3, "echo started; exec sleep 600")
	first := b.start(t, spec)
	second := b.start(t, spec)
	if string(first) != string(second) {
		t.Errorf("two states: %s and %s", first, second)
	}
	s := b.until(t, b.Runtime, first, "printing", func(s runtime.Status) bool { return s.LogTail != "" })
	if strings.Count(s.LogTail, "started") != 1 {
		t.Errorf("it ran more than once:\n%s", s.LogTail)
	}
	if log, err := b.Runtime.Log(b.ctx, first); err != nil || log != s.LogTail {
		t.Errorf("the log is %q, %v", log, err)
	}
	if all := b.list(t, b.Runtime); len(all) != 1 {
		t.Errorf("%d run", len(all))
	}
}

func testStop(t *testing.T, b *bench) {
	state := b.start(t, b.notebook(t, 4))
	b.running(t, state)
	b.stop(t, b.Runtime, state)
	for range 2 {
		if err := b.Runtime.Stop(b.ctx, state); err != nil {
			t.Errorf("Stop of what is gone: %v", err)
		}
	}
	if s := b.exited(t, state); s.Message.Empty() || s.Endpoint.Address != "" {
		t.Errorf("gone, but %+v", s)
	}
	if all := b.list(t, b.Runtime); len(all) != 0 {
		t.Errorf("%d still run", len(all))
	}
}

func testStubborn(t *testing.T, b *bench) {
	state := b.start(t, b.script(t, 5, `trap "echo asked" TERM; echo ready; while :; do sleep 0.05; done`))
	says := func(word string) func(runtime.Status) bool {
		return func(s runtime.Status) bool { return strings.Contains(s.LogTail, word) }
	}
	b.until(t, b.Runtime, state, "ready", says("ready"))
	if err := b.Runtime.Stop(b.ctx, state); err != nil {
		t.Fatal(err)
	}
	b.until(t, b.Runtime, state, "asked", says("asked"))
	if b.PassGrace != nil {
		b.PassGrace()
	}
	b.stop(t, b.Runtime, state)
}

func testExit(t *testing.T, b *bench) {
	state := b.start(t, b.script(t, 6, `echo "cannot open the shop: $JUPYTER_TOKEN" >&2; exit 3`))
	s := b.exited(t, state)
	if s.ExitCode != 3 || s.EndedAt.IsZero() || !strings.Contains(s.Message.String(), "exited with code 3") {
		t.Errorf("code %d, message %q", s.ExitCode, s.Message)
	}
	if !strings.Contains(s.LogTail, "cannot open the shop") {
		t.Errorf("log %q", s.LogTail)
	}
	if strings.Contains(s.LogTail, token) {
		t.Error("the log that people see holds the token")
	}
	if again := b.exited(t, state); again.ExitCode != s.ExitCode || again.LogTail != s.LogTail {
		t.Errorf("asked again, it says %+v", again)
	}
	if all := b.list(t, b.Runtime); len(all) != 0 {
		t.Errorf("%d are listed", len(all))
	}
}

func testList(t *testing.T, b *bench) {
	if all := b.list(t, b.Runtime); len(all) != 0 {
		t.Fatalf("%d run before anything was started", len(all))
	}
	states := map[int64]runtime.State{}
	for id := int64(10); id < 13; id++ {
		states[id] = b.start(t, b.script(t, id, "exec sleep 600"))
	}
	b.stop(t, b.Runtime, states[11])
	all := b.list(t, b.Runtime)
	if len(all) != 2 || all[[2]int64{10, 1}] == nil || all[[2]int64{12, 1}] == nil {
		t.Errorf("listed: %v", all)
	}
	if listed := all[[2]int64{12, 1}]; listed != nil {
		b.stop(t, b.Runtime, listed)
		b.exited(t, states[12])
	}
}

func testAdoption(t *testing.T, b *bench) {
	spec := b.notebook(t, 20)
	state := b.start(t, spec)
	b.running(t, state)
	later := b.Reopen(t)
	s, err := later.Poll(b.ctx, state)
	if err != nil || s.Phase != runtime.PhaseRunning {
		t.Fatalf("the later one sees %+v, %v", s, err)
	}
	if code, body := Call(t, s.Endpoint, token, "GET", "/api/status", ""); code != http.StatusOK {
		t.Errorf("dialled by the later one: %d %s", code, body)
	}
	if again, err := later.Start(b.ctx, spec); err != nil || string(again) != string(state) {
		t.Errorf("started again by the later one: %s, %v", again, err)
	}
	if all := b.list(t, later); len(all) != 1 {
		t.Errorf("the later one lists %v", all)
	}
	b.stop(t, later, state)
	b.exited(t, state)
}

func testGenerations(t *testing.T, b *bench) {
	spec := b.script(t, 30, "exec sleep 600")
	first := b.start(t, spec)
	b.stop(t, b.Runtime, first)
	spec.Generation = 2
	second := b.start(t, spec)
	if s := b.exited(t, first); s.Phase != runtime.PhaseExited {
		t.Errorf("the first generation lives again: %+v", s)
	}
	if err := b.Runtime.Stop(b.ctx, first); err != nil {
		t.Errorf("Stop of the first generation: %v", err)
	}
	s, err := b.Runtime.Poll(b.ctx, second)
	if err != nil || s.Phase == runtime.PhaseExited {
		t.Errorf("the second generation: %+v, %v", s, err)
	}
}

func testUnknown(t *testing.T, b *bench) {
	for _, state := range []runtime.State{nil, runtime.State("no state"), runtime.State("{}")} {
		if _, err := b.Runtime.Poll(b.ctx, state); err == nil {
			t.Errorf("Poll knows what %q is", state)
		}
		if err := b.Runtime.Stop(b.ctx, state); err == nil {
			t.Errorf("Stop knows what %q is", state)
		}
	}
}

func testBadSpec(t *testing.T, b *bench) {
	spec := b.script(t, 40, "exec sleep 600")
	spec.Mounts = []models.Mount{{Source: b.Share(t), Target: "relative"}}
	if _, err := b.Runtime.Start(b.ctx, spec); err == nil {
		t.Error("a mount without a place was accepted")
	}
	spec.Command, spec.Mounts = nil, nil
	if _, err := b.Runtime.Start(b.ctx, spec); err == nil {
		t.Error("no command was accepted")
	}
	if all := b.list(t, b.Runtime); len(all) != 0 {
		t.Errorf("%d run", len(all))
	}
}
