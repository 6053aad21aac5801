// Package storage keeps the shared directories: their layout on disk, the rules about
// who may do what with a path, by which casbin decides, and which mounts a member's
// workspace gets from them.
//
// It must not know how a workspace mounts them, nor HTTP.
package storage
