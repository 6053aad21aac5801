package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
)

// outputFlag is the output format of a command.
type outputFlag struct{ config.Choice }

// bindOutput adds the flag --output to cmd.
func bindOutput(cmd *cobra.Command) *outputFlag {
	f := &outputFlag{config.Choice{Value: "text", Allowed: []string{"text", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "output format")
	return f
}

// write writes v as text, or as JSON.
func (f *outputFlag) write(w io.Writer, v fmt.Stringer) error {
	if f.Value == "json" {
		return writeJSON(w, v)
	}
	_, err := fmt.Fprintln(w, v)
	return err
}

// writeJSON prints a value.
func writeJSON(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
