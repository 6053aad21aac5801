package main

import (
	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/storage/nfs"
)

func newNFSCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "nfs", Short: "Export the shared directories of this machine by NFS", Args: cobra.NoArgs,
		Long: "Export the shared directories of this machine by NFS, to the nodes of a cluster.\n\n" +
			"It runs NFS-Ganesha (Debian's packages nfs-ganesha and nfs-ganesha-vfs) and needs root. Every project is an export of its own,\n" +
			"which follows the directories within a second; the public directories are read-only. Other clients are refused."}
	config.AddFlags(cmd, config.ForNFS...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		return nfs.Run(cmd.Context(), cfg.NFS, cfg.Logger(cmd.ErrOrStderr()))
	}
	return cmd
}
