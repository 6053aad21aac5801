// Package placement chooses the devices that take a demand for GPU shares.
//
// It is pure: a [Snapshot] of the pool goes through filters, each with its
// [Reason]; a [Policy] orders what is left; the answer is a [Choice] with its
// [Explanation], or a [Refusal] that counts the reasons and tells the best
// that was seen. The same input always gives the same answer, whatever the
// order of nodes and devices in it.
//
// It must not know the clock, the database, who is asking, or the words in
// which an answer is given to a person. It neither reads nor writes anything;
// whoever commits a choice verifies it again in its own transaction.
//
// Its sub-packages place streams of tasks on machines whose CPU counts too:
// fleet has the published policies and Weir's own, trace compares them. The
// pool itself still decides by [BestFit].
//
// Units everywhere: a GPU core is one hundredth of one GPU's compute; memory
// is in MiB. Ids of nodes and devices are expected to be unique in a
// snapshot; a device that is listed twice is still granted at most once to
// one demand.
package placement
