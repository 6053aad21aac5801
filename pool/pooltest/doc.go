// Package pooltest is the world in which the services of the pool are tested:
// projects and a pool over one fresh store, people, machines, and checks that
// add up the rules by hand from the rows alone.
//
// It must not know what is tested with it.
package pooltest
