package workspaces_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/policies"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/runtime"
)

// metrics are those of the deployment, after what was counted is saved.
func (w *deploymentWorld) metrics(span string) models.DeploymentMetrics {
	w.Helper()
	if err := w.SaveCounts(w.ctx); err != nil {
		w.Fatal(err)
	}
	m, err := w.DeploymentMetrics(w.ctx, w.actor, w.id, span)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// generates sends a request for tokens, each of which takes some seconds.
func (w *deploymentWorld) generates(seconds ...time.Duration) error {
	done := make(chan error, 1)
	go func() {
		_, _, _, err := w.complete(workspaces.CompletionInput{Prompt: "abc", MaxTokens: int64(len(seconds))})
		done <- err
	}()
	for _, n := range seconds {
		<-w.parts.computing
		w.clock.Advance(n * time.Second)
		w.parts.compute <- struct{}{}
	}
	return <-done
}

func within(d time.Duration, bucketOf time.Duration) bool {
	return models.DurationBucket(d) == models.DurationBucket(bucketOf)
}

// Requests are counted with their latency, their tokens and their failures, in all spans; what the client has caused
// is not. The deployment that takes the place of another one goes on with its metrics.
func TestDeploymentMetrics(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		if m := w.metrics("hour"); m.Total != (models.RequestMetrics{}) || len(m.Steps) != 60 || m.Until.Sub(m.From) != time.Hour {
			t.Errorf("without requests: %+v", m)
		}
		if err := w.generates(2, 5); err != nil {
			t.Fatal(err)
		}
		for _, span := range workspaces.MetricsSpans {
			m := w.metrics(span)
			total := m.Total
			if total.Succeeded != 1 || total.Failed != 0 || total.Rejected != 0 || total.InputTokens != 3 || total.Outputs != 2 {
				t.Errorf("%s: %+v", span, total)
			}
			if !within(total.FirstToken.Quantile(.5), 2*time.Second) || !within(total.Duration.Quantile(.99), 7*time.Second) || total.Duration.Mean() != 7*time.Second {
				t.Errorf("%s: the first token after %v, the end after %v", span, total.FirstToken.Quantile(.5), total.Duration.Quantile(.99))
			}
			if last := m.Steps[len(m.Steps)-1]; last != total || m.Until.Before(w.clock.Now()) || m.Until.Sub(w.clock.Now()) > m.Step() {
				t.Errorf("%s: the last of %d steps until %v has %+v", span, len(m.Steps), m.Until, last)
			}
		}
		w.clientsCauses()
		w.rejectsAndFails()
		m := w.metrics("hour")
		if m.Total.Succeeded != 1 || m.Total.Failed != 2 || m.Total.Rejected != 1 {
			t.Errorf("after a failure and a refusal: %d, %d, %d", m.Total.Succeeded, m.Total.Failed, m.Total.Rejected)
		}
		w.served.change("second", nil)
		w.id = w.updated()
		w.load()
		if err := w.generates(1); err != nil {
			t.Fatal(err)
		}
		if m := w.metrics("week"); m.Total.Succeeded != 2 || m.Total.Failed != 2 || m.Total.Outputs != 5 {
			t.Errorf("after an update: %+v", m.Total)
		}
		list, err := w.LiveDeploymentMetrics(w.ctx)
		if err != nil || len(list) != 1 || list[0].FirstID != 1 || list[0].Succeeded != 2 || list[0].Duration.Count() != 2 {
			t.Errorf("since the beginning: %+v, %v", list, err)
		}
	})
}

// clientsCauses sends what ends for a reason of its client: none of it counts.
func (w *deploymentWorld) clientsCauses() {
	w.Helper()
	_, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a", Logprobs: 21})
	want(w.T, err, models.KindInvalid, "must be from 0 to 20")
	_, err = w.Embed(w.ctx, w.actor, w.id, workspaces.EmbeddingInput{Input: "a"})
	want(w.T, err, models.KindConflict, "generates text")
	ctx, leave := context.WithCancel(w.ctx)
	c, err := w.Complete(ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
	if err != nil {
		w.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		_, err := c.Generate(nil)
		left <- err
	}()
	<-w.parts.computing
	leave()
	if err := <-left; err == nil {
		w.Error("a client that has gone gets a completion")
	}
	c.Close()
	w.parts.compute <- struct{}{} // which nobody receives
	if err := w.sends(func() {}); err == nil {
		w.Error("a client that takes nothing gets a completion")
	}
	w.actors.err = models.Forbidden("The membership has ended.")
	_, err = w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
	w.actors.err = nil
	want(w.T, err, models.KindForbidden, "has ended")
}

// sends generates a token that does not reach the client, after something has happened.
func (w *deploymentWorld) sends(happens func()) error {
	w.Helper()
	c, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	unsent := make(chan error, 1)
	go func() {
		_, err := c.Generate(func(serving.Token, string) error {
			happens()
			return errors.New("the connection is closed")
		})
		unsent <- err
	}()
	<-w.parts.computing
	w.parts.compute <- struct{}{}
	return <-unsent
}

// rejectsAndFails sends a request that is refused because too many wait, and one that its part does not answer.
func (w *deploymentWorld) rejectsAndFails() {
	w.Helper()
	first, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
	if err != nil {
		w.Fatal(err)
	}
	ctx, leave := context.WithCancel(w.ctx)
	results := make(chan error, 33)
	for range cap(results) {
		go func() {
			c, err := w.Complete(ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
			if err == nil {
				c.Close()
			}
			results <- err
		}()
	}
	want(w.T, <-results, models.KindRateLimited, "32 requests already wait")
	leave()
	for range cap(results) - 1 {
		<-results
	}
	first.Close()
	w.set(func(p *partProcess) { p.silent = true })
	_, err = w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
	want(w.T, err, models.KindUnavailable, "Part 1 did not respond")
	w.set(func(p *partProcess) { p.silent = false })
	want(w.T, w.sends(w.Cut), models.KindUnavailable, "cannot check your rights") // which also ends a write that the client does not take
}

// What several servers count is added up, what cannot be saved is kept for the next time, and old minutes are
// removed.
func TestCountsOfServers(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		other := workspaces.NewService(w.store, access, w.world.pool)
		other.Parts, other.Served, other.Actors = w.parts, w.served, w.actors
		mine := w.Service
		for _, server := range []*workspaces.Service{mine, other, mine} {
			w.Service = server
			if err := w.generates(1); err != nil {
				t.Fatal(err)
			}
			broken, cancel := context.WithCancel(w.ctx)
			cancel()
			if err := server.SaveCounts(broken); err == nil {
				t.Error("counts are saved after the end")
			}
		}
		w.Service = mine
		if m := w.metrics("hour"); m.Total.Succeeded != 2 {
			t.Errorf("one server has counted %d", m.Total.Succeeded)
		}
		w.Service = other
		if m := w.metrics("hour"); m.Total.Succeeded != 3 || m.Total.Outputs != 3 {
			t.Errorf("both have counted %+v", m.Total)
		}
		w.clock.Advance(26 * time.Hour)
		if err := w.generates(1); err != nil {
			t.Fatal(err)
		}
		if m := w.metrics("week"); m.Total.Succeeded != 4 {
			t.Errorf("a day later: %+v", m.Total)
		}
		for step, kept := range map[int64]time.Duration{60: 2 * time.Hour, 900: 25 * time.Hour} {
			counts, err := w.store.Read(w.ctx).DeploymentCounts(w.id, step, time.Time{})
			for _, c := range counts {
				if w.clock.Now().Sub(c.At) > kept {
					t.Errorf("of %v, a step of %d s is kept", c.At, step)
				}
			}
			if err != nil || len(counts) == 0 {
				t.Errorf("%d counts, %v", len(counts), err)
			}
		}
	})
}

// The time in which a part has computed is counted once, also when another server takes over, and the memory that it has used is
// recorded when it has grown.
func TestTimeOfParts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		works := func(active, busy, memory int64) {
			w.Helper()
			w.set(func(p *partProcess) {
				p.status.Active, p.status.Busy, p.status.Memory = p.status.Active+active, new(*p.status.Busy+busy), memory
			})
			w.clock.Advance(20 * time.Second)
			w.get()
		}
		works(10_000, 4000, 1000)
		w.restart()
		w.set(func(p *partProcess) { p.silent = true })
		w.get()
		w.clock.Advance(20 * time.Second)
		w.set(func(p *partProcess) { p.silent = false })
		w.get()
		works(0, 500, 1010) // of a request that has not ended
		if v := w.get(); v.Parts[0].MaxMemory != 1000 {
			t.Errorf("its memory is %d", v.Parts[0].MaxMemory)
		}
		works(10_000, 8500, 1100)
		m := w.metrics("day")
		if want := (models.PartTime{Active: 20_000, Busy: 13_000}); m.Total.Parts != want || len(m.Parts) != 1 || m.Parts[0] != want || want.Fraction() != .65 {
			t.Errorf("%+v and %+v", m.Total.Parts, m.Parts)
		}
		if v := w.get(); v.Parts[0].MaxMemory != 1100 {
			t.Errorf("its memory is %d", v.Parts[0].MaxMemory)
		}
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true, ExitCode: 137} })
		w.until(models.PartLoading)
		if v := w.get(); v.Parts[0].MaxMemory != 0 || !w.has("started again: its process was killed.") {
			t.Errorf("after its end, its memory is %d: %v", v.Parts[0].MaxMemory, v.Events)
		}
	})
}
