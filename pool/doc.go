// Package pool is the live scheduler: it allocates shares of the providers'
// devices, queues and estimates, and makes the views of the pool. It decides
// over a snapshot by the pure packages placement, queue and estimates, and
// commits in one transaction.
//
// It must not know how machines join the pool, what a share is used for, how a
// workspace runs, or HTTP.
package pool
