// Package queue puts the requests that wait for the pool in the order in
// which they are served, and says of each why it does not come earlier.
//
// The rule, from the weightiest criterion down: the higher priority; who has
// waited for patience or longer, the oldest of them first, so that nobody
// starves; the project that holds the smaller part of its quota, with what
// earlier requests of this same order would be granted counted in, so that
// one project's many requests take turns with another's; the older request.
//
// It is pure. It must not know the clock, the database, whether a request
// fits anywhere, or the words in which a place in the queue is told.
package queue
