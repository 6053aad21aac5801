// Command weir is the portal, the API, the controllers and the command line
// of Weir.
package main

import (
	"os"
	_ "time/tzdata" // lending hours have zones, and an image need not have a list of them

	"weir/cmd/weir/cli"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(cli.Run(newRootCommand(), os.Args[1:], os.Stdout, os.Stderr))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{Use: "weir", Short: "Weir pools GPUs and gives teams Jupyter workspaces on them"}
	root.AddCommand(newServeCommand(), newAgentCommand(), newMigrateCommand(), newAdminCommand(), newVersionCommand(), newOpenAPICommand(), newSimulateCommand())
	root.AddCommand(cli.Commands()...)
	return root
}
