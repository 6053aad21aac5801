// Command weir is the portal, the REST API, the controllers, the agent on a
// GPU machine and the command line.
//
// It contains the commands for this machine or the database, and the wiring:
// only wire.go creates services and chooses between one machine and a cluster.
// It must not know the decisions of services.
package main
