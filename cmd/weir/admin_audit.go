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
		Short: "Check that the audit is whole: no entry was changed, removed or put in between",
		Long: "Check that the audit is whole: no entry was changed, removed or put in between.\n\n" +
			"Prints how many entries there are and the head, HASH:NUMBER. Keep the head where nobody who can write\n" +
			"to the database can reach it: with --expect it shows later whether entries were cut off or written anew."}
	config.Bind(cmd, config.ForStore...)
	expect := cmd.Flags().String("expect", "", "a head that an earlier check has printed, which must still be in the chain")
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
	fmt.Fprintf(cmd.OutOrStdout(), "%d entries, unbroken\n", head.Number)
	if head.Number > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "head %s\n", head)
	}
	return nil
}
