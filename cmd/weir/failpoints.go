//go:build failpoints

package main

import "weir/models/faults"

func init() { faults.FromEnvironment() }
