// Package baselines has the placement policies of others, as published, for
// comparison with Weir's own in simulations: those of Weng et al., "Beware of
// Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
// Descent", USENIX ATC 2023.
//
// It must not be used where shares are given for real.
package baselines
