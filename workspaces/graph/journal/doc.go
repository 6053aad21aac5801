// Package journal keeps what a run of a task graph has done, so that it can be resumed and
// shown.
//
// A journal is a file of lines, each an event in JSON: an attempt begins with its plan, a plan
// is revised, an operator starts or ends, the attempt is over. Lines are only ever appended, and
// one is on the disk before the next operator starts: whatever is killed when, the file tells
// what has ended. A line that was cut off by a crash is ignored and removed by the next attempt.
// While an attempt runs, it holds a lock on the file, so that there is one at a time (file.go).
//
// [Read] makes the progress of the graph of the events (fold.go). A journal is anybody's file:
// sizes and numbers are bounded, and what does not fit is refused.
//
// The package must not know of processes, HTTP or the database.
package journal
