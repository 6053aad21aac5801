package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
)

// outputFlag is how a command shows its result.
type outputFlag struct{ config.Choice }

// bindOutput gives cmd the flag --output.
func bindOutput(cmd *cobra.Command) *outputFlag {
	f := &outputFlag{config.Choice{Value: "text", Allowed: []string{"text", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "output format")
	return f
}

// write shows v: its String for a person, itself as JSON for a program.
func (f *outputFlag) write(w io.Writer, v fmt.Stringer) error {
	if f.Value == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	_, err := fmt.Fprintln(w, v)
	return err
}
