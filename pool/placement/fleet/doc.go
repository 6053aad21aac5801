// Package fleet places tasks on machines with CPU, memory and GPUs, one task
// after another, and keeps what is free as it goes.
//
// A [Fleet] is incremental: it remembers for every kind of task how each node
// scores, and a decision scores again only the nodes that changed since that
// kind was last placed. So a decision costs what changed, and a logarithm of
// the number of nodes.
//
// How good a placement is, a [Policy] says, one node at a time: the published
// methods and Weir's own, see [Policies].
//
// It must not know where nodes and tasks come from, the clock, or the
// database. It is deterministic: the same calls give the same answers.
//
// Units everywhere: CPU in thousandths of one, memory in MiB, GPUs in
// thousandths of one GPU ("milli").
package fleet
