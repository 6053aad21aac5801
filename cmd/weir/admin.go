package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/policies"
)

func newAdminCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "admin", Short: "Administer accounts and agents on the database directly"}
	cmd.AddCommand(newCreateUserCommand(), newCreateTokenCommand(), newResetPasswordCommand(), newAuthorizeCommand(), newAuthorityCommand(), newVerifyAuditCommand())
	return cmd
}

// withAccounts runs fn over the accounts of the configured database. Who has
// the database in hand needs no account.
func withAccounts(cmd *cobra.Command, fn func(context.Context, *models.Store, *policies.Accounts) error) error {
	cfg, err := config.Load(cmd)
	if err != nil {
		return err
	}
	store, err := openStore(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	access, err := policies.NewAccess()
	if err == nil {
		ctx := policies.From(cmd.Context(), policies.Origin{Via: policies.ViaCommand})
		err = fn(ctx, store, policies.NewAccounts(store, access))
	}
	return errors.Join(err, store.Close())
}

func newCreateUserCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create-user", Short: "Create an account; its password comes from standard input", Args: cobra.NoArgs}
	config.Bind(cmd, config.ForStore...)
	email := cmd.Flags().String("email", "", "address to sign in with (required)")
	name := cmd.Flags().String("name", "", "name shown to others (default: the part of the address before @)")
	admin := cmd.Flags().Bool("admin", false, "make the account a platform administrator")
	auditor := cmd.Flags().Bool("auditor", false, "make the account an auditor, who sees everything and changes nothing")
	stdin := cmd.Flags().Bool("password-stdin", false, "read the password from standard input (required)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		password, err := readPassword(cmd.InOrStdin(), *stdin)
		if err != nil {
			return err
		}
		if *name == "" {
			*name, _, _ = strings.Cut(*email, "@")
		}
		return withAccounts(cmd, func(ctx context.Context, _ *models.Store, a *policies.Accounts) error {
			u, err := a.CreateUser(ctx, policies.System("admin"), policies.NewUser{Email: *email, Name: *name, Password: password, Admin: *admin, Auditor: *auditor})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "created %s (id %d)\n", u.Email, u.ID)
			}
			return err
		})
	}
	return cmd
}

func newCreateTokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create-token", Short: "Create an access token and print it, alone on one line", Args: cobra.NoArgs}
	config.Bind(cmd, config.ForStore...)
	email := cmd.Flags().String("email", "", "address of the account (required)")
	name := cmd.Flags().String("name", "", "what the token is for (required)")
	lifetime := cmd.Flags().Duration("lifetime", policies.DefaultTokenLifetime, "how long it is good for")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withAccounts(cmd, func(ctx context.Context, _ *models.Store, a *policies.Accounts) error {
			_, secret, err := a.CreateTokenFor(ctx, policies.System("admin"), *email, policies.NewToken{Name: *name, Lifetime: *lifetime})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), secret)
			}
			return err
		})
	}
	return cmd
}

func newResetPasswordCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reset-password", Short: "Replace a password; it comes from standard input. Sessions and tokens of the account end", Args: cobra.NoArgs}
	config.Bind(cmd, config.ForStore...)
	email := cmd.Flags().String("email", "", "address of the account (required)")
	stdin := cmd.Flags().Bool("password-stdin", false, "read the password from standard input (required)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		password, err := readPassword(cmd.InOrStdin(), *stdin)
		if err != nil {
			return err
		}
		return withAccounts(cmd, func(ctx context.Context, store *models.Store, a *policies.Accounts) error {
			u, err := store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(*email)))
			if err != nil {
				return err
			}
			return a.ResetPassword(ctx, policies.System("admin"), u.ID, password)
		})
	}
	return cmd
}

// readPassword reads one line. A password never stands on a command line,
// where every user of the machine could read it.
func readPassword(in io.Reader, asked bool) (string, error) {
	if !asked {
		return "", config.Usagef("give the password on standard input, with --password-stdin")
	}
	if f, ok := in.(*os.File); ok && config.IsTerminal(f) {
		fmt.Fprint(os.Stderr, "Password: ")
	}
	line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}
