// Package kube runs workspaces as pods of a Kubernetes cluster: a namespace
// for each project with its limits, network rules and storage; in it a pod, a
// secret and a service for each start of a workspace. What belongs to a start
// is owned by its pod and goes with it; what runs is found again by labels
// alone, so a later [Runtime] adopts it.
//
// Pure functions build the objects (objects*.go) and describe the state of pods
// (messages.go); the rest sends requests to the API server, as few as possible.
//
// It must not know the database, who may start what, nor how the pool chose a
// node and its devices; it speaks to notebooks not at all.
package kube
