//go:build !failpoints

package workspaces

// Failpoint marks a step at which fault tests kill the process. Without the
// build tag "failpoints" it is nothing.
func Failpoint(string) {}
