// Package history replays the past requests of a pool on its machines or on
// others. Jobs arrive when they did and use their shares as long as they did. A
// job that does not fit waits, in the order of arrival, while later jobs that
// fit go ahead; a job that the empty pool cannot take is refused. The result
// has waiting times and unmet demand.
//
// Quotas and backfill reservations are not simulated: it is about machines,
// not about who may use them.
//
// It is pure. It must not know the clock, the database, where the history
// comes from, or how a result is shown.
package history
