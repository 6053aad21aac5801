// Package nfs exports the shared directories by NFS, with NFS-Ganesha.
//
// [Config.Exports] and [Config.Text] are pure: the exports of the projects that exist, and
// Ganesha's configuration for them. [Run] keeps a Ganesha running with them, as its child.
package nfs
