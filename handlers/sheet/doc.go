// Package sheet reads and writes tables as CSV, as spreadsheets do: what it
// writes runs nothing where it is opened, and it reads back what it wrote.
//
// It must not know what a table is about, nor where it comes from.
package sheet
