// Package local runs workspaces as processes of this machine: each is a real
// Jupyter inside bubblewrap, with namespaces, an unprivileged user and, where
// the system permits, cgroup limits of its own. What it starts is detached:
// it outlives a killed server, and a later [Runtime] over the same directory
// finds, polls and stops it.
//
// [Runs] runs commands in the same sandbox until they end, and keeps their exit
// codes and logs.
//
// The network namespace is shared with the host, because notebooks install
// packages. Jupyter itself listens on a Unix socket that only the host sees,
// and its kernels speak over private sockets; a server that a user opens on a
// loopback port can be reached by the other workspaces.
//
// It must not know the database, who may start what, where a mount or a GPU
// share came from, nor HTTP beyond asking Jupyter whether it is up.
package local
