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

func newAdminCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "admin", Short: "Manage accounts, agents, backups and the audit log directly in the database"}
	cmd.AddCommand(newCreateUserCommand(), newCreateTokenCommand(), newResetPasswordCommand(), newResetSecondFactorCommand(),
		newAuthorizeCommand(), newAuthorityCommand(), newVerifyAuditCommand(), newBackupCommand(), newRestoreCommand(), newGenerationCommand())
	return cmd
}

func newSimulateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "simulate", Short: "Simulate the pool"}
	cmd.AddCommand(newSimulatePlacementCommand(), newSimulateNotebooksCommand())
	return cmd
}

func newGraphCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "graph", Short: "Plan and run task graphs on shares of CPUs"}
	cmd.AddCommand(newGraphPlanCommand(), newGraphRunCommand(), cli.NewGraphModelCommand())
	return cmd
}
