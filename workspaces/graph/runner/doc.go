// Package runner runs the operators of a task graph as processes of this machine, or as what its
// caller starts: [Config.Start].
//
// Each operator is pinned to the CPUs of its branch with sched_setaffinity before its program
// starts, and told their number by OMP_NUM_THREADS and the variables of other libraries. While
// operators run, the utilization of the machine is measured without them (cpus.go). When it
// crosses a threshold, what remains is planned anew, and the next operators take the new
// shares (runner.go). It measures the time of every operator: the longer of its duration and
// of the CPU time of its processes, which is what it takes on one CPU.
//
// Starts and ends are kept as they happen (package journal), so that an attempt that was killed
// is resumed: what has succeeded does not run again, and what it has left running is ended first
// (leftovers.go).
//
// What a graph is and how CPUs are shared it leaves to package graph. It must not know of
// YAML, files, HTTP or the database.
package runner
