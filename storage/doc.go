// Package storage keeps the shared directories: their layout on disk, and
// which of them a member's workspace sees, read-only or read-write.
//
// It must not know how a workspace mounts them, nor HTTP.
package storage
