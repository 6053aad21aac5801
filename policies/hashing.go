package policies

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/models"
)

const (
	// hashingAtOnce limits the memory for password hashing.
	hashingAtOnce = 4
	// hashingOf and hashingOfAll are how many hashes may wait, of a client and of all.
	hashingOf    = 32
	hashingOfAll = 256
)

// hashing lets few passwords be hashed at once, and clients take turns: one that sends
// many does not hold up the others.
type hashing struct {
	mu      sync.Mutex
	running int
	turns   []string // clients with waiting hashes, the next one first
	waiting map[string][]chan struct{}
	total   int // of waiting
}

// do calls fn when it is the client's turn. It refuses the client that has too many
// waiting.
func (h *hashing) do(ctx context.Context, client string, fn func()) error {
	turn, err := h.enter(client)
	if err != nil {
		return err
	}
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			if h.withdraw(client, turn) {
				return ctx.Err()
			}
		}
	}
	defer h.leave()
	fn()
	return nil
}

// enter takes a free place, or returns what is closed when the client has one.
func (h *hashing) enter(client string) (turn chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running < hashingAtOnce {
		h.running++
		return nil, nil
	}
	if len(h.waiting[client]) >= hashingOf || h.total >= hashingOfAll {
		return nil, models.RateLimited(5*time.Second, "Too many passwords are being checked. Try again in a moment.")
	}
	if h.waiting == nil {
		h.waiting = map[string][]chan struct{}{}
	}
	if len(h.waiting[client]) == 0 {
		h.turns = append(h.turns, client)
	}
	turn = make(chan struct{})
	h.waiting[client] = append(h.waiting[client], turn)
	h.total++
	return turn, nil
}

// leave passes the place on to the client whose turn it is.
func (h *hashing) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.turns) == 0 {
		h.running--
		return
	}
	client := h.turns[0]
	h.turns = h.turns[1:]
	turn := h.waiting[client][0]
	h.remove(client, 0)
	if len(h.waiting[client]) > 0 {
		h.turns = append(h.turns, client)
	}
	close(turn)
}

// withdraw gives up waiting; false: it was the client's turn already.
func (h *hashing) withdraw(client string, turn chan struct{}) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.waiting[client], turn)
	if i < 0 {
		return false
	}
	h.remove(client, i)
	if len(h.waiting[client]) == 0 {
		h.turns = slices.DeleteFunc(h.turns, func(c string) bool { return c == client })
	}
	return true
}

func (h *hashing) remove(client string, i int) {
	if h.waiting[client] = slices.Delete(h.waiting[client], i, i+1); len(h.waiting[client]) == 0 {
		delete(h.waiting, client)
	}
	h.total--
}
