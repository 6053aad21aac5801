// Package rules checks the rules of this project: which package may import
// which, the size of functions and files, and the completeness of
// translations. It contains tests only.
//
// It must not be imported.
package rules
