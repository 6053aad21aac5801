// Command pause holds the namespaces of a pod: it sleeps until it is told to
// end, and reaps the children that others leave behind.
//
// It must not know anything else.
package main
