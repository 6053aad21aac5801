// Package deploy is the installation on Kubernetes: a Helm chart, and the
// manifests that are made from it. The Go code renders and reads them, for
// tests alone: here, in cmd/weir/config and in e2e they are held to what they
// promise.
//
// It must not know how Weir works inside.
package deploy
