// Package e2e tests Weir as its users meet it: the built program, its real
// command line, real Jupyter processes, real databases, and HTTP from outside.
// It is tests only.
//
// It must not know how the program works inside: beside the helpers for tests
// it imports nothing of ours, and it reads neither tables nor Go structs of
// the program.
package e2e
