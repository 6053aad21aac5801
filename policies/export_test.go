package policies

import (
	"fmt"
	"strconv"
)

// SetMaxEnforcers sets the size of the cache of enforcers.
func (a *Access) SetMaxEnforcers(n int) { a.enforcers.max = n }

// CachedEnforcers is the number of cached enforcers.
func (a *Access) CachedEnforcers() int { return len(a.enforcers.all) }

// ClearDecisions drops the cached decisions of a project.
func (a *Access) ClearDecisions(project int64) {
	for _, role := range a.enforcers.all[project].roles {
		clear(role.decisions)
	}
}

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
