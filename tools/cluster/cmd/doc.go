// Command cmd brings up the test cluster and removes it: “make cluster” and
// “make cluster-down”.
//
// It must not know how a cluster is made.
package main
