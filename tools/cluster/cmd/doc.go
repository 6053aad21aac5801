// Command cmd starts and stops the test cluster: “make cluster” and “make
// cluster-down”.
//
// It must not know how a cluster is built.
package main
