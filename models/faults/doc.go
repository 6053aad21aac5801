// Package faults lets environment variables kill a process at a step and shift its clock. Tests use
// it, and programs that are built with the tag failpoints. It must not be in any other program.
package faults
