// Package placement is the placement engine, of the live pool and of
// simulation alike: it chooses the devices for demands for GPU shares.
//
// An [Engine] follows what is free of some nodes. [Engine.Find] filters the nodes,
// orders those that fit by a [Policy] and answers a [Choice], which
// [Engine.Explain] explains. [Refuse] tells why a demand fits nowhere: a
// [Refusal] with the count of each [Reason]. The pool offers two policies, see
// [PolicyNamed]; [Scored] makes others, for comparison.
//
// An Engine is incremental: a decision costs the nodes that have changed since
// the same demand was last placed, and a logarithm of the number of nodes.
// The same nodes and calls give the same answers, whatever the order of nodes
// and devices.
//
// It is pure. It must not know the clock, the database, or the texts that
// explain a decision to people. A choice is verified again in the transaction
// that commits it.
//
// A GPU core is one hundredth of one GPU's compute; memory is in MiB, CPU in
// thousandths of one. Ids of nodes and devices are unique in a pool.
package placement
