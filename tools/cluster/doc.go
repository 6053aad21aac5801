// Package cluster brings up a real Kubernetes on this machine, without a
// registry: etcd, API server, controllers and scheduler as ordinary
// processes, and as root a node as well, with containerd and a kubelet of its
// own. Everything lies in one directory; whoever knows it can stop the
// cluster, also after a crash of the one who started it. Developers reach it
// with “make cluster”, tests with [Open] or [Start].
//
// It must not know the portal, nor what the cluster is used for.
package cluster
