package main

import (
	"os"
	_ "time/tzdata" // for lending hours; an image may contain no time zones

	"github.com/spf13/cobra"

	"weir/cmd/weir/cli"
)

func main() {
	os.Exit(cli.Run(newRootCommand(), os.Args[1:], os.Stdout, os.Stderr))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{Use: "weir", Short: "Pool GPUs and run Jupyter workspaces on them"}
	root.AddCommand(newServeCommand(), newAgentCommand(), newNFSCommand(), newMigrateCommand(), newAdminCommand(),
		newVersionCommand(), newOpenAPICommand(), newSimulateCommand(), newBarriersCommand(), newGraphCommand(), newModelCommand())
	root.AddCommand(cli.Commands()...)
	root.AddCommand(newReferenceCommand(root))
	return root
}
