// Package workspaces runs the members' development environments: the catalog
// of environments and how version constraints match them, the merging of
// launch parameters, and the lifecycle of every workspace from request to stop.
//
// It must not know how a workspace is run (that is a [runtime.Runtime]: local
// or kube), nor the HTTP of the portal. It uses the pool and the shared directories only through the
// interfaces that it declares.
package workspaces
