// Package trace replays a cluster's tasks against a placement policy and
// reports how much of the GPUs it manages to allocate.
//
// It reads the CSV format of the openb trace and follows the protocol of Weng
// et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC 2023: tasks arrive in random
// order until they have requested more than there is, nothing leaves, and a
// task that fits nowhere is dropped.
//
// It must not know the database, the clock (which is injected), or how a
// report is shown.
package trace
