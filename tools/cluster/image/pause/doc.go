// Command pause keeps the namespaces of a pod open: it sleeps until it is
// terminated, and reaps orphaned children.
//
// It must not know anything else.
package main
