// Package rules is the pure part of the rules of shared storage: paths, the layout of
// the shared directories, which rules apply to a path and in which order, and which
// mounts express them.
//
// It must not know who evaluates the rules, nor a database or a file system.
package rules
