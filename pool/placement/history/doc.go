// Package history replays what was asked of a pool in the past on machines
// that may be others than then: jobs arrive when they did and hold what they
// get for as long as they did; what does not fit waits, in the order of
// arrival, while later jobs that fit go ahead; what not even the empty pool
// could take is refused. What comes of it tells how long people would have
// waited, and what was asked for in vain.
//
// It knows neither quotas nor that a waiting request comes to keep room for
// itself: it is about machines, not about who may have them.
//
// It is pure. It must not know the clock, the database, where the history
// comes from, or how a result is shown.
package history
