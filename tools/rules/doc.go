// Package rules checks the rules of this project: which package may import
// which, the size of functions, files and lines, the completeness of translations,
// that things have the glossary's names, and that tests wait long enough. It
// contains tests only.
//
// It must not be imported.
package rules
