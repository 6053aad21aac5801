// Package queue orders the requests that wait for the pool, and gives for each
// the criterion that puts it behind its predecessor.
//
// The criteria, the weightiest first: the higher priority; requests that are
// overdue, the oldest of them first, so that none starves; the project with
// the smaller part of its quota in use, counting earlier requests of the same
// order as granted, so that the requests of projects alternate; the older
// request.
//
// It is pure. It must not know the clock, the database, whether a request
// fits, or the texts that describe a position.
package queue
