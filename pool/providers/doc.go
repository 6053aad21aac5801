// Package providers manages the machines that lend GPUs, and their devices. It
// enrolls their agents with an authorization code or the identity of a cluster
// node, processes heartbeats, and revokes agents. It stores the inventory, the
// owners' terms, sharing modes, and metrics.
//
// It must not know how shares are placed, nor the quotas of projects: it reads
// shares only to notify workspaces of changes to their devices.
package providers
