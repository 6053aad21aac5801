// Package cluster starts a real Kubernetes on this machine, without a
// registry: etcd, API server, controllers and scheduler as ordinary processes,
// and, as root, a node with its own containerd and kubelet. All its files are
// in one directory, from which it can be stopped even after a crash.
// Developers use it with “make cluster”, tests with [Open] or [Start].
//
// It must not know the portal, nor what the cluster is used for.
package cluster
