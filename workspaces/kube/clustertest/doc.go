// Package clustertest holds workspaces/kube to its word on a real Kubernetes
// with a real kubelet: the conformance suite of all runtimes, and what only a
// cluster has. It is tests only, behind the build tag cluster:
//
//	go test -tags cluster ./workspaces/kube/clustertest
//
// Without KUBECONFIG it brings up a cluster of its own, which needs root; with
// it, that cluster's one node must be this machine, for the tests write to the
// shared directories.
//
// It must not be imported.
package clustertest
