package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/config"
)

const (
	settingsHead = `# Settings

Each setting is a flag (` + "`--session-lifetime 8h`" + `), an environment variable (` + "`WEIR_SESSION_LIFETIME=8h`" + `) and a YAML key
(` + "`session-lifetime: 8h`" + `) in the file of ` + "`--config`" + `. Flags override the environment,
which overrides the file. An empty variable counts as unset.
Durations are such as ` + "`30s`, `1h`" + `; lists are separated by commas. See [Operate a server](../operating.md#settings)
for the ones to consider first.
` + generated

	commandsHead = `# Command line reference

` + "`weir`" + ` is one program for the server, the agents and the command line. For connections, exit codes and examples, see
[Use the command line](../how-to/command-line.md).
` + generated

	generated = "\nThis page is generated from the code with `make generate`.\n"
)

// newReferenceCommand prints the generated pages of docs/reference.
func newReferenceCommand(root *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: "reference", Hidden: true, Short: "Print a page of the reference", Args: cobra.NoArgs}
	cmd.AddCommand(
		&cobra.Command{Use: "settings", Short: "Print the settings", Args: cobra.NoArgs, Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), settingsHead, config.Reference())
		}},
		&cobra.Command{Use: "cli", Short: "Print the commands", Args: cobra.NoArgs, Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), commandsHead)
			writeCommands(cmd.OutOrStdout(), root)
		}})
	return cmd
}

// writeCommands writes a section for each command below parent that does something.
func writeCommands(w io.Writer, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "completion" {
			continue
		}
		if !c.HasAvailableSubCommands() || c.HasAvailableLocalFlags() {
			writeCommand(w, c)
		}
		writeCommands(w, c)
	}
}

func writeCommand(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.CommandPath(), c.Short, c.UseLine())
	if long := strings.TrimSpace(strings.TrimPrefix(c.Long, c.Short+".")); long != "" {
		fmt.Fprintf(w, "\n%s\n", long)
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
	}
	writeFlags(w, c)
}

// connectionFlags are those of all commands that call a server.
var connectionFlags = []string{"server", "token", "token-file", "timeout", "output", "no-interactive", "yes"}

// writeFlags lists the own flags of a command, and refers to those of many.
func writeFlags(w io.Writer, c *cobra.Command) {
	calls := c.Flags().Lookup("token-file") != nil
	var rows strings.Builder
	var settings []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help" || calls && slices.Contains(connectionFlags, f.Name):
		case config.IsFlag(f):
			settings = append(settings, "`"+f.Name+"`")
		default:
			kind, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&rows, "| `%s` | %s |\n", config.Cell(strings.TrimSpace("--"+f.Name+" "+kind)), config.Cell(usage))
		}
	})
	if rows.Len() > 0 {
		fmt.Fprintf(w, "\n| flag | description |\n| --- | --- |\n%s", rows.String())
	}
	switch {
	case calls && c.Flags().Lookup("output") == nil:
		fmt.Fprint(w, "\nThe [connection options](../how-to/command-line.md#connection-options) `server`, `token`, `token-file` and `timeout` are flags, too.\n")
	case calls:
		fmt.Fprint(w, "\nThe [connection options](../how-to/command-line.md#connection-options) are flags, too.\n")
	case len(settings) > 2*len(config.ForAgent): // all of them
		fmt.Fprint(w, "\nAll [settings](settings.md) except those of an agent are flags, too, and `--config`.\n")
	case len(settings) > 0:
		fmt.Fprintf(w, "\n[Settings](settings.md): %s.\n", strings.Join(settings, ", "))
	}
}
