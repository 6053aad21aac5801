// Package runtimetest is the conformance suite of runtime.Runtime: the tests of
// an implementation call Run with a Harness.
//
// It must not know how an implementation runs a workspace: it uses the interface
// and the notebook.
package runtimetest
