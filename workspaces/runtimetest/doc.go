// Package runtimetest holds every workspaces.Runtime to the same behaviour:
// an implementation calls Run from its tests with a Harness of its own.
//
// It must not know how an implementation runs a workspace; it sees what a
// caller of the interface and a user of the notebook see.
package runtimetest
