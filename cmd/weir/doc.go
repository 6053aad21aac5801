// Command weir is the portal, the REST API, the controllers, the agent on a
// GPU machine and the command line.
//
// Here stand the commands that work on this machine or on the database, and
// the wiring: wire.go alone makes services and chooses between one machine and
// a cluster. What a service decides must not be known here.
package main
