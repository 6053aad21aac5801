// Package idleness decides when a workspace in which nothing works is stopped.
//
// [Work] finds in two successive observations when something last worked: code in
// a kernel, a person at a terminal, processes, a GPU. An open tab and a probe are no
// work. [Limit.Next] says what follows: nothing, a reminder, or the stop.
//
// The package is pure. It must not know of notebooks, databases or the clock.
package idleness
