// Package rules holds the project to its own rules: who may import whom, how
// large a function may be, and that every sentence has its translation. It
// is tests only.
//
// It must not be imported.
package rules
