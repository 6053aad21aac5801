// Package sheet reads and writes CSV tables for spreadsheets. Cells are escaped so
// that a spreadsheet executes no formula, and unescaped when they are read.
//
// It does not depend on the contents of a table.
package sheet
