package main

import (
	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/pool/authority"
)

func newAuthorityCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "authority", Short: "Print the certificate of the authority for agents, without its key; the authority is made when absent", Args: cobra.NoArgs}
	config.Bind(cmd, "data-dir", "authority-file", "log-level", "log-format")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		a, err := authority.Open(cfg.AuthorityFile, models.WallClock)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(a.PEM())
		return err
	}
	return cmd
}
