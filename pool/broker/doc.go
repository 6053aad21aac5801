// Package broker reserves GPU shares for spans of time: it decides on requests, and
// leads each reservation from its grant to its end.
//
// A decision is made by pool/timeline over what the pool says is taken, and committed
// while the pool is locked. Requests that arrive meanwhile are decided together, in one
// transaction, by their scores (together.go). It must not know how shares are placed or what uses them.
package broker
