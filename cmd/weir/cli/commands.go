package cli

import "github.com/spf13/cobra"

// Commands returns the commands that call a server.
func Commands() []*cobra.Command {
	return []*cobra.Command{newPoolCommand(), newProviderCommand(), newDeviceCommand(), newAuthorizeCommand(),
		newRunCommand(), newRunsCommand(),
		newDeployCommand(), newDeploymentsCommand(), newWorkspacesCommand(), newUsageCommand()}
}
