package cli

import (
	"github.com/spf13/cobra"
)

// Commands returns the commands that call a server.
func Commands() []*cobra.Command {
	return []*cobra.Command{newPoolCommand(), newProviderCommand(), newDeviceCommand(), newAuthorizeCommand(),
		newRunCommand(), newRunsCommand(),
		newDeployCommand(), newDeploymentsCommand(), newWorkspacesCommand(), newReserveCommand(), newReservationsCommand(), newUsageCommand()}
}

func newProviderCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "provider", Short: "Manage providers, the machines that lend GPUs"}
	cmd.AddCommand(newProviderListCommand(), newProviderShowCommand(), newProviderSetCommand(),
		newProviderActionCommand("drain", "Stop new allocations on a provider; existing ones continue"),
		newProviderActionCommand("resume", "End a drain, or cancel a recall"),
		newProviderActionCommand("accept", "Authorize the GPUs that the agent of a provider reports now"),
		newRecallCommand(), newRevokeCommand(), newRemoveCommand())
	return cmd
}
