package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
)

func newVerifyAuditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "verify-audit", Args: cobra.NoArgs,
		Short: "Verify that no entry of the audit log was changed, removed or inserted",
		Long: "Verify that no entry of the audit log was changed, removed or inserted.\n\n" +
			"Prints the number of entries and the head, HASH:NUMBER. Keep the head out of reach of those who can write\n" +
			"to the database: with --expect it later shows whether entries were cut off or rewritten."}
	config.AddFlags(cmd, config.ForStore...)
	expect := cmd.Flags().String("expect", "", "head printed by an earlier verification, which must still be in the log")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var expected models.AuditHead
		if *expect != "" {
			var err error
			if expected, err = models.ParseAuditHead(*expect); err != nil {
				return config.Usagef("--expect: %s", err.Error())
			}
		}
		return verifyAudit(cmd, expected)
	}
	return cmd
}

// verifyAudit only reads, also while a server runs.
func verifyAudit(cmd *cobra.Command, expected models.AuditHead) (err error) {
	cfg, err := config.Load(cmd)
	if err != nil {
		return err
	}
	store, err := openToRead(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.VerifyAudit(cmd.Context(), expected)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d entries, intact\n", head.Number)
	if head.Number > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "head %s\n", head)
	}
	return nil
}
