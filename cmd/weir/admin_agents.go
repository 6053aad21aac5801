package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/authority"
	"weir/pool/providers"
)

func newAuthorityCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "authority", Short: "Print the certificate of the certificate authority for agents, creating it if missing",
		Args: cobra.NoArgs}
	config.AddFlags(cmd, "data-dir", "authority-file", "log-level", "log-format")
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

func newAuthorizeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "authorize", Short: "Create an authorization code for the GPU code of a machine, and print it",
		Args: cobra.NoArgs}
	config.AddFlags(cmd, append([]string{"authority-file"}, config.ForStore...)...)
	gpuCode := cmd.Flags().String("gpu-code", "", "GPU code that “weir agent” prints on the machine (required)")
	owner := cmd.Flags().String("owner", "", "email address of the owner (required)")
	name := cmd.Flags().String("name", "", "name of the provider (default: the name of the machine)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		if _, err := os.Stat(cfg.AuthorityFile); err != nil {
			return fmt.Errorf("authority file not found: %w; set --authority-file", err)
		}
		return withAccounts(cmd, func(ctx context.Context, store *store.Store, _ *policies.Accounts) error {
			u, err := store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(*owner)))
			if err != nil {
				return fmt.Errorf("owner: %w", err)
			}
			access, err := policies.NewAccess()
			if err != nil {
				return err
			}
			a, err := authority.Open(cfg.AuthorityFile, store.Now)
			if err != nil {
				return err
			}
			enrollment := &providers.Enrollment{Store: store, Access: access, Authority: a}
			code, _, err := enrollment.Authorize(ctx, policies.System("admin"),
				providers.AuthorizeInput{GPUCode: *gpuCode, Name: *name, OwnerID: u.ID})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), code)
			}
			return err
		})
	}
	return cmd
}
