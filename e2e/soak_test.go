//go:build cluster

package e2e

import (
	"os"
	"sync"
	"testing"
	"time"
)

// soakFor is how long the load lasts, and how often a server is killed:
// WEIR_SOAK=3m for the whole of it.
func soakFor(t *testing.T) (length, every time.Duration) {
	t.Helper()
	text := os.Getenv("WEIR_SOAK")
	if text == "" {
		return 45 * time.Second, 10 * time.Second
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < time.Minute {
		t.Fatalf("WEIR_SOAK=%q is not a duration of a minute or more", text)
	}
	return length, 20 * time.Second
}

// Two servers of one portal under load, of which one after the other is
// killed: what was answered is there in the end, nothing was started twice,
// and the rules hold all the time.
func TestSoak(t *testing.T) {
	length, every := soakFor(t)
	k, client := newCluster(t)
	one, other := replicas(t, k)
	env := one.helloIn(k)
	one.nodeLends(k)
	l := newLoad(one, other, env)
	starts := watchPods(t, client)

	var work sync.WaitGroup
	for i, m := range l.team.Members {
		work.Go(func() { l.works(i, m) })
		work.Go(func() { l.follows(i, m) })
	}
	work.Go(func() { l.looks() })
	kills := killInTurn(every, length, one, other)
	eventually(t, starting, starts.seen) // a busy machine may not have come to it
	close(l.over)
	work.Wait()

	t.Logf("%s with %d kills: %s", length, kills, l.figures())
	settle(t, l)
	l.check(t)
	starts.check(t)
	one.holdsRules(1)
	eventually(t, gone, func() string { return leftIn(t, client, "") })
}

// killInTurn kills one server after another and starts it again, and tells how
// often.
func killInTurn(every, length time.Duration, all ...*server) (kills int) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for over := time.After(length); ; {
		select {
		case <-over:
			return kills
		case <-tick.C:
		}
		s := all[kills%len(all)]
		s.kill()
		s.start()
		kills++
	}
}
