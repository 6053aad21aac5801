// Package placement chooses the devices that take a demand for GPU shares.
//
// It is pure: a [Snapshot] of the pool goes through filters, each with its
// [Reason]; a [Policy], chosen by [PolicyNamed], orders what is left; the
// answer is a [Choice] with its [Explanation], or a [Refusal] that counts the
// reasons and tells the best that was seen. The same input always gives the
// same answer, whatever the order of nodes and devices in it.
//
// It must not know the clock, the database, who is asking, or the words in
// which an answer is given to a person. It neither reads nor writes anything;
// whoever commits a choice verifies it again in its own transaction.
//
// The default policy, weir, learns from the history of demands which rests of
// machines are still of use; [BestFit] needs no history. A sub-package, fleet,
// places streams of tasks on machines whose CPU counts too, by the published
// policies and Weir's own, and lends its measure of fragmentation to those
// here; trace compares them.
//
// Units everywhere: a GPU core is one hundredth of one GPU's compute; memory
// is in MiB. Ids of nodes and devices are expected to be unique in a
// snapshot; a device that is listed twice is still granted at most once to
// one demand.
package placement
