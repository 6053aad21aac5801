// Package cli is the command line: how a command is run and which exit code
// it has, and the commands that talk to a server over its REST API, a file
// for each.
//
// It knows the types that the API carries and none of the services behind
// them: what a command may do, the server decides.
package cli
