package cli

import "github.com/spf13/cobra"

// Commands are those that talk to a server.
func Commands() []*cobra.Command {
	return []*cobra.Command{newPoolCommand(), newProviderCommand(), newDeviceCommand(), newAuthorizeCommand()}
}
