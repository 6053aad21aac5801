// Package deploy is the installation on Kubernetes: a Helm chart, and the
// manifests that are rendered from it. The Go code renders and parses them,
// for tests only.
//
// It must not know how Weir works inside.
package deploy
