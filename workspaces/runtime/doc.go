// Package runtime is the contract between workspaces and where they run: what a runtime
// does, what it is told and what it reports. It also has what all runtimes share: the
// files and the environment of notebook servers, the environment of GPU shares, and the
// report of what works in a notebook.
//
// It must not know projects, rights or the database, nor how one runtime works
// (workspaces/local, workspaces/kube).
package runtime
