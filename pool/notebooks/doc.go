// Package notebooks simulates how long notebook sessions hold GPUs, and how long their
// tasks wait for them, under policies that decide when a session takes and releases them.
//
// It is pure. It must not know the clock, the database, or how a report is shown.
package notebooks
