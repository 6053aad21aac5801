package policies

import (
	"fmt"
	"strconv"
)

// SetMaxDecisions sets the size of the cache of decisions.
func (a *Access) SetMaxDecisions(n int) { a.max = n }

// CachedDecisions is the number of cached decisions.
func (a *Access) CachedDecisions() int { return len(a.decisions) }

// ClearDecisions drops the cached decisions.
func (a *Access) ClearDecisions() { clear(a.decisions) }

// AccessRules is access.csv.
func AccessRules() string { return accessRules }

// FillResets makes as many requests for password links as are counted.
func (a *Accounts) FillResets() {
	for i := range failureKeys {
		a.resets.take(a.store.Now(), bound{[2]string{strconv.Itoa(i), everyClient}, resetsPerAddress})
	}
}

// FillAttempts makes attempts to sign in at n other addresses, each from another client.
func (a *Accounts) FillAttempts(n int) {
	for i := range n {
		who := fmt.Sprint(len(a.failures.seen), " ", i)
		a.failures.take(a.store.Now(), bound{[2]string{who, who}, failureLimit})
	}
}

// UndoAttempts makes n attempts to sign in that come to nothing, each at another address.
func (a *Accounts) UndoAttempts(n int) {
	for i := range n {
		who := fmt.Sprint("undone ", i)
		bounds := boundsOf(who, who, "")
		a.failures.take(a.store.Now(), bounds...)
		a.failures.undo(bounds...)
	}
}
