package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// cobra alone would show a group's help and succeed.
func TestGroupRefusesAnUnknownCommand(t *testing.T) {
	root, group, ran := &cobra.Command{Use: "weir", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "group"}, false
	group.AddCommand(&cobra.Command{Use: "known", Run: func(*cobra.Command, []string) {}})
	root.AddCommand(group)
	root.SetOut(io.Discard)
	prepare(root, &ran)
	for args, ok := range map[string]bool{"group": true, "group known": true, "group nosuch": false} {
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); (err == nil) != ok {
			t.Errorf("weir %s: %v", args, err)
		}
	}
}
