package workspaces_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/providers"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/runtime"
)

// A failure to write the parts is repeated, and then fails the deployment with its reason; one
// that cannot get better fails it at once.
func TestFailedWriting(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.served.failed = models.Unavailable(nil, "The disk is full.")
		w.deploy()
		w.poll(t, "writing is repeated", func() bool { return w.has("Writing the parts is repeated: The disk is full.") })
		w.served.mu.Lock()
		w.served.failed = nil
		w.served.mu.Unlock()
		w.clock.Advance(11 * time.Second)
		w.until(models.PartLoading)
		for failure, writes := range map[error]int{models.Unavailable(nil, "The disk is full."): 3, models.Conflict("The disk is full."): 1} {
			w.served.mu.Lock()
			w.served.failed, w.served.writes = failure, 0
			w.served.mu.Unlock()
			w.deploy()
			w.poll(t, "the deployment fails", func() bool {
				w.clock.Advance(11 * time.Second)
				return w.get().State == models.DeploymentFailed
			})
			if reason := w.get().Reason.String(); reason != "The deployment failed: The disk is full." || w.served.writes != writes {
				t.Errorf("%q after %d attempts, not %d", reason, w.served.writes, writes)
			}
		}
	})
}

// A part that ends again and again is started after pauses, each longer than the one before, until its deployment
// fails; when it was ready in between, they begin anew.
func TestPausesBetweenRestarts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		ends := func(pause time.Duration) {
			t.Helper()
			w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true, ExitCode: 70} })
			starts := w.parts.starts
			w.poll(t, "it has ended", func() bool { return w.get().Parts[0].State == models.PartWaiting })
			if w.clock.Advance(pause - time.Millisecond); w.get().Parts[0].State != models.PartWaiting || w.parts.starts != starts {
				t.Errorf("it is started again before %s", pause)
			}
			if w.clock.Advance(time.Millisecond); w.get().Parts[0].State != models.PartLoading {
				t.Errorf("it is not started again after %s", pause)
			}
		}
		ends(time.Second)
		ends(10 * time.Second)
		w.load()
		for _, pause := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
			ends(pause)
		}
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true, ExitCode: 70} })
		w.poll(t, "the deployment fails", func() bool { return w.get().State == models.DeploymentFailed })
	})
}

// A request that is computed by a part whose machine is gone ends when the part is stopped: nothing else would
// end it.
func TestRequestOnSilentPart(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		failed := make(chan error, 1)
		go func() {
			_, _, _, err := w.complete(workspaces.CompletionInput{Prompt: "a"})
			failed <- err
		}()
		<-w.parts.computing
		w.set(func(p *partProcess) { p.silent, p.lost = true, true })
		w.get()
		w.clock.Advance(time.Minute + time.Second)
		w.poll(t, "the part is stopped", func() bool { return w.get().Parts[0].State == models.PartLoading })
		want(t, <-failed, models.KindUnavailable, "Part 1 has ended.")
	})
}

// On GPUs that are not simulated, parts get an environment with PyTorch, or none: NumPy would leave the GPUs
// unused.
func TestPartsComputeOnGPUs(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		if p := w.get().Parts[0]; p.Library != "numpy" || p.DeviceType != "cpu" {
			t.Errorf("%+v", p)
		}
		first, err := w.StopDeployment(w.ctx, w.actor, w.id)
		if err != nil {
			t.Fatal(err)
		}
		w.poll(t, "it has ended", func() bool { return w.get().State.Ended() })
		real := devices{{UUID: "GPU-0", Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 80_000}}
		if err := b.machines.Enlist(w.ctx, providers.Host{Name: "node", Digest: providers.MachineDigest("node")}, real); err != nil {
			t.Fatal(err)
		}
		in := workspaces.DeployInput{ProjectID: w.project.ID, Path: "/notebook/1/project_model/tiny", Cores: 10}
		want(t, second(w.Deploy(w.ctx, w.actor, in)), models.KindConflict, "No environment has PyTorch")
		in.EnvironmentID = first.EnvironmentID
		want(t, second(w.Deploy(w.ctx, w.actor, in)), models.KindInvalid, "environment_id: has no PyTorch")
		torch := b.environment(t, workspaces.EnvironmentInput{Name: "torch", Command: []string{"/bin/sleep", "600"}, Versions: map[string]string{"torch": "2.9"}})
		in.EnvironmentID = 0
		if d, err := w.Deploy(w.ctx, w.actor, in); err != nil || d.EnvironmentID != torch.ID {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// What no deployment uses is searched for from time to time.
func TestSweepOfParts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.clock.Advance(2 * time.Minute)
		w.get()
		if n := len(w.served.swept); n == 0 || !slices.Equal(w.served.swept[n-1], []int64{w.id}) {
			t.Errorf("%v", w.served.swept)
		}
	})
}

// A start that may succeed later is repeated. What the start of a part waits for is told once, and is the
// reason if it takes too long. A part whose program is of another version of the protocol is started again.
func TestPartThatWaits(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.parts.refused = models.Unavailable(nil, "The cluster is not available.")
		w.deploy()
		for range 10 {
			if v := w.get(); v.State != models.DeploymentDeploying || v.Parts[0].Failures != 0 {
				t.Fatalf("%+v", v)
			}
		}
		w.parts.refused = nil
		w.until(models.PartLoading)
		w.set(func(p *partProcess) { p.silent, p.waits = true, models.Say("The image is pulled") })
		told := 0
		for range 29 {
			w.get()
			w.clock.Advance(time.Minute)
		}
		for _, e := range w.get().Events {
			if strings.Contains(e.Message.String(), "Part 1 waits: The image is pulled.") {
				told++
			}
		}
		if told != 1 || w.parts.starts != 1 {
			t.Errorf("it is told %d times, and started %d times", told, w.parts.starts)
		}
		w.clock.Advance(2 * time.Minute)
		w.poll(t, "it is started again", func() bool { return w.has("Part 1 is started again: The image is pulled.") })
		w.load()
		w.set(func(p *partProcess) { p.status.Version-- })
		w.poll(t, "it is started again", func() bool { return w.has("its program is of another version of Weir") })
		w.load()
	})
}

// A part that hangs is stopped and started again, with the stage in which it hung.
func TestHungParts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.deploy()
		w.until(models.PartLoading)
		w.set(func(p *partProcess) { p.silent = true })
		again := func(limit time.Duration, stage string) {
			t.Helper()
			starts := w.parts.starts
			w.get()
			w.clock.Advance(limit)
			if w.get(); w.parts.starts != starts {
				t.Errorf("it was started again after %s", limit)
			}
			w.clock.Advance(time.Second)
			w.poll(t, "it is started again", func() bool { w.get(); w.clock.Advance(time.Second); return w.parts.starts > starts })
			if !w.has(stage) {
				t.Errorf("%+v", w.get().Events)
			}
		}
		again(10*time.Minute, "its process has not begun to listen within 10m0s")
		w.until(models.PartLoading)
		w.set(func(p *partProcess) { p.status.Progress = 30 })
		again(10*time.Minute, "loading its tensors has stayed at 30% for 10m0s")
		w.until(models.PartLoading)
		w.set(func(p *partProcess) { p.status = loadedStatus })
		w.until(models.PartReady)
		w.set(func(p *partProcess) { p.silent = true })
		want(t, second(w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})), models.KindUnavailable, "Part 1 did not respond.")
		again(time.Minute, "it has not responded for 1m0s")
		for range 3 { // after one since it was ready
			w.until(models.PartLoading)
			w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true, ExitCode: 70} })
		}
		w.poll(t, "the deployment fails", func() bool { return w.get().State == models.DeploymentFailed })
		if reason := w.get().Reason.String(); !strings.Contains(reason, "its process has ended with exit code 70") {
			t.Errorf("%q", reason)
		}
	})
}

// complete is a completion with the tokens and the text of it.
func (w *deploymentWorld) complete(in workspaces.CompletionInput) (ids []int32, text string, end workspaces.CompletionEnd, err error) {
	c, err := w.Complete(w.ctx, w.actor, w.id, in)
	if err != nil {
		return nil, "", end, err
	}
	defer c.Close()
	end, err = c.Generate(func(t serving.Token, more string) error {
		ids, text = append(ids, t.ID), text+more
		return nil
	})
	return ids, text + end.Text, end, err
}

// A completion ends when the right for it does, and nothing of it is returned.
func TestRevokedCompletion(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		gone := models.Forbidden("Your right has ended.")
		for _, key := range []string{store.RevocationKey("user", w.actor.User.ID), store.RevocationKey("project", w.project.ID), store.SessionKey("session")} {
			w.actors.err = nil
			result := make(chan error, 1)
			go func() {
				ids, _, _, err := w.complete(workspaces.CompletionInput{Prompt: "a"})
				if len(ids) > 0 {
					t.Errorf("%v was returned", ids)
				}
				result <- err
			}()
			<-w.parts.computing
			w.Service.Revoked(w.ctx, []string{key, "user:9999"}) // the right lasts
			w.actors.err = gone
			w.Service.Revoked(w.ctx, []string{"user:9999"}) // of someone else
			select {
			case err := <-result:
				t.Fatalf("it has ended: %v", err)
			default:
			}
			w.Service.Revoked(w.ctx, []string{key})
			if err := <-result; !errors.Is(err, gone) {
				t.Errorf("%s: got %v", key, err)
			}
		}
		if _, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"}); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
}

// Input of completions is refused with the field, and a text ends where the model ends it.
func TestCompletion(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.computes()
		for field, in := range map[string]workspaces.CompletionInput{
			"top_p":       {Prompt: "a", TopP: new(0.0)},
			"temperature": {Prompt: "a", Temperature: new(2.5)},
			"logprobs":    {Prompt: "a", Logprobs: -1}, "logprobs: must be from 0 to 20": {Prompt: "a", Logprobs: 21},
			"stop": {Prompt: "a", Stop: []any{"a", ""}}, "stop: must be a text, or a list of up to 4": {Prompt: "a", Stop: 7.0},
			"max_tokens: must be from 1 to 63: prompt and completion have at most 64 tokens": {Prompt: "a", MaxTokens: 64},
			"prompt: has 64 tokens: prompt and completion have at most 64":                   {Prompt: strings.Repeat("a", 64)},
		} {
			if _, err := w.Complete(w.ctx, w.actor, w.id, in); models.KindOf(err) != models.KindInvalid || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: got %v", field, err)
			}
		}
		ids, text, end, err := w.complete(workspaces.CompletionInput{Prompt: strings.Repeat("a", 60), Temperature: new(0.0)})
		if err != nil || len(ids) != 4 || text != "\x00\x00\x00\x00" || end.Stopped {
			t.Errorf("%v, %q, %v, %v", ids, text, end, err)
		}
		ids, text, end, err = w.complete(workspaces.CompletionInput{Prompt: strings.Repeat("a", 60), Temperature: new(0.0), Stop: "\x00\x00\x00"})
		if err != nil || len(ids) != 3 || text != "" || !end.Stopped {
			t.Errorf("%v, %q, %v, %v", ids, text, end, err)
		}
		w.served.kept.End = []int32{7, 0}
		ids, text, end, err = w.complete(workspaces.CompletionInput{Prompt: "a", Temperature: new(0.0)})
		if err != nil || len(ids) != 0 || text != "" || !end.Stopped {
			t.Errorf("%v, %q, %v, %v", ids, text, end, err)
		}
		w.served.kept = serving.Generation{NoText: "its decoder is not ByteLevel"}
		_, _, _, err = w.complete(workspaces.CompletionInput{Prompt: "a"})
		if models.KindOf(err) != models.KindInvalid || !strings.Contains(err.Error(), "tokenizer.json cannot be used: its decoder is not ByteLevel") {
			t.Errorf("%v", err)
		}
		w.served.kept = serving.Generation{}
		drawn := func(seed *int64) []int32 {
			ids, _, _, err := w.complete(workspaces.CompletionInput{Prompt: "a", Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			return ids
		}
		if a, b := drawn(new(int64(7))), drawn(new(int64(7))); !slices.Equal(a, b) {
			t.Errorf("the same seed draws %v and %v", a, b)
		}
		if a, b := drawn(nil), drawn(nil); slices.Equal(a, b) {
			t.Errorf("without a seed, %v was drawn twice", a)
		}
	})
}

// As many requests as the batch are computed, a stated number waits, and further ones are
// refused with the time to wait.
func TestWaitingCompletions(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		first, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		results := make(chan error, 33)
		for range 33 {
			go func() {
				c, err := w.Complete(ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
				if err == nil {
					c.Close()
				}
				results <- err
			}()
		}
		refused, ok := errors.AsType[*models.Error](<-results)
		if !ok || refused.Kind != models.KindRateLimited || refused.RetryAfter <= 0 || !strings.Contains(refused.Error(), "32 requests already wait") {
			t.Errorf("got %v", refused)
		}
		first.Close()
		if err := <-results; err != nil {
			t.Errorf("the next one: %v", err)
		}
		cancel()
		for range 31 {
			if err := <-results; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		last, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
		if err != nil {
			t.Fatal(err)
		}
		last.Close()
	})
}

// A part has a CPU, or half of the limit, which leaves room for something else, if that is enough for it
// to work.
func TestCPUOfParts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		for limit, want := range map[int64]int64{8000: 1000, 800: 400, 400: 250, 249: 0} {
			narrow := models.Resources{GPUCores: 100, GPUMemoryMiB: 40_000, CPUMilli: limit, MemoryMiB: 16_384}
			_, actor := w.addMember(t, w.addRole(t, w.project, fmt.Sprint("with ", limit), narrow))
			d, err := w.Deploy(w.ctx, actor, workspaces.DeployInput{ProjectID: w.project.ID, Path: "/notebook/1/project_model/tiny", Cores: 10})
			if want == 0 {
				e, ok := errors.AsType[*models.Error](err)
				if !ok || len(e.Fields) != 1 || e.Fields[0].Name != "parts" || !strings.HasPrefix(e.Fields[0].Reason.String(), "CPU: 0.25 requested") {
					t.Errorf("with a limit of %d: %v", limit, err)
				}
			} else if err != nil || d.Demand.CPUMilli != want {
				t.Errorf("with a limit of %d there are %d: %v", limit, d.Demand.CPUMilli, err)
			}
		}
	})
}
