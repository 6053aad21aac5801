// Package pool is the live scheduler: who is given which share of the
// providers' devices, who waits, for how long, and what people may see of it.
// It decides over a snapshot by the pure packages placement, queue and
// timeline, and commits in one transaction.
//
// It must not know how machines come into the pool, what a share is used for,
// how a workspace is run, nor HTTP.
package pool
