// Package local runs workspaces as processes of this machine: each is a real
// Jupyter inside bubblewrap, with namespaces, an unprivileged user and, where
// the system permits, cgroup limits of its own. What it starts is detached:
// it outlives a killed server, and a later [Runtime] over the same directory
// finds, polls and stops it.
//
// [Runs] runs commands in the same sandbox until they end, and keeps their exit
// codes and logs.
//
// Each sandbox has a network namespace with a way to other machines by slirp4netns, where
// that works on this machine; otherwise it shares the network of the machine. Jupyter itself
// listens on a Unix socket that only the host sees, and its kernels speak over private
// sockets.
//
// It must not know the database, who may start what, where a mount or a GPU
// share came from, nor HTTP beyond asking Jupyter whether it is up.
package local
