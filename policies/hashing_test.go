package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir/models"
)

// crowd are hashes that last until the test lets them end.
type crowd struct {
	hashing
	begun []string
	end   chan struct{}
}

// hash has a client's password hashed, in a goroutine, as far as it gets.
func (c *crowd) hash(ctx context.Context, client string) (result chan error) {
	result = make(chan error, 1)
	go func() {
		result <- c.do(ctx, client, func() {
			c.begun = append(c.begun, client)
			<-c.end
		})
	}()
	synctest.Wait()
	return result
}

func (c *crowd) finish(n int) {
	for range n {
		c.end <- struct{}{}
		synctest.Wait()
	}
}

// A client that sends many passwords waits for itself, not the others for it.
func TestClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{end: make(chan struct{})}
		for range hashingAtOnce + hashingOf {
			c.hash(t.Context(), "many")
		}
		if err := <-c.hash(t.Context(), "many"); models.KindOf(err) != models.KindRateLimited {
			t.Errorf("one more of the client: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := c.hash(ctx, "leaves")
		c.hash(t.Context(), "one")
		c.hash(t.Context(), "two")
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who has left: %v", err)
		}
		c.finish(hashingAtOnce + hashingOf + 2)
		want := slices.Concat(slices.Repeat([]string{"many"}, hashingAtOnce), []string{"many", "one", "two"}, slices.Repeat([]string{"many"}, hashingOf-1))
		if !slices.Equal(c.begun, want) {
			t.Errorf("the order is %s", strings.Join(c.begun, " "))
		}
		if c.running != 0 || c.total != 0 || len(c.waiting) != 0 || len(c.turns) != 0 {
			t.Errorf("left behind: %+v", &c.hashing)
		}
	})
}

// The queue is bounded, whoever waits.
func TestWaitingHashesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowd{end: make(chan struct{})}
		for i := range hashingAtOnce + hashingOfAll {
			c.hash(t.Context(), fmt.Sprint(i))
		}
		if err := <-c.hash(t.Context(), "another"); models.KindOf(err) != models.KindRateLimited {
			t.Errorf("one more: %v", err)
		}
		c.finish(hashingAtOnce + hashingOfAll)
	})
}
