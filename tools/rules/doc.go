// Package rules checks the rules of this project: which package may import
// which, the size of functions and files, the completeness of translations,
// and that things have the glossary's names. It contains tests only.
//
// It must not be imported.
package rules
