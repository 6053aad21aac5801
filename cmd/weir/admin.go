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
	"weir/models/store"
	"weir/policies"
)

// withAccounts runs fn with the accounts of the configured database. Access to
// the database replaces authentication.
func withAccounts(cmd *cobra.Command, fn func(context.Context, *store.Store, *policies.Accounts) error) error {
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
		ctx := policies.WithOrigin(cmd.Context(), policies.Origin{Via: policies.ViaCommand})
		err = fn(ctx, store, policies.NewAccounts(store, access))
	}
	return errors.Join(err, store.Close())
}

func newCreateUserCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create-user", Short: "Create an account", Args: cobra.NoArgs}
	config.AddFlags(cmd, config.ForStore...)
	email := cmd.Flags().String("email", "", "email address to sign in with (required)")
	name := cmd.Flags().String("name", "", "display name (default: the part of the email address before @)")
	admin := cmd.Flags().Bool("admin", false, "make the account a platform administrator")
	auditor := cmd.Flags().Bool("auditor", false, "make the account an auditor, with read access to everything")
	stdin := cmd.Flags().Bool("password-stdin", false, "read the password from standard input (required)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		password, err := readPassword(cmd.InOrStdin(), *stdin)
		if err != nil {
			return err
		}
		if *name == "" {
			*name, _, _ = strings.Cut(*email, "@")
		}
		return withAccounts(cmd, func(ctx context.Context, _ *store.Store, a *policies.Accounts) error {
			u, err := a.CreateUser(ctx, policies.System("admin"),
				policies.NewUser{Email: *email, Name: *name, Password: password, Admin: *admin, Auditor: *auditor})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "Created %s (id %d)\n", u.Email, u.ID)
			}
			return err
		})
	}
	return cmd
}

func newCreateTokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create-token", Short: "Create an access token and print it", Args: cobra.NoArgs}
	config.AddFlags(cmd, config.ForStore...)
	email := cmd.Flags().String("email", "", "email address of the account (required)")
	name := cmd.Flags().String("name", "", "name of the token (required)")
	lifetime := cmd.Flags().Duration("lifetime", policies.DefaultTokenLifetime, "lifetime of the token")
	scopes := cmd.Flags().StringSlice("scopes", nil, "what the token can be used for: read, launch, project, admin (default all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withAccounts(cmd, func(ctx context.Context, _ *store.Store, a *policies.Accounts) error {
			in := policies.NewToken{Name: *name, Lifetime: *lifetime}
			for _, s := range *scopes {
				in.Scopes = append(in.Scopes, models.TokenScope(s))
			}
			_, secret, err := a.CreateTokenFor(ctx, policies.System("admin"), *email, in)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), secret)
			}
			return err
		})
	}
	return cmd
}

func newResetPasswordCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reset-password",
		Short: "Set a new password, or print a link for it; ends the sessions and revokes the tokens of the account", Args: cobra.NoArgs}
	config.AddFlags(cmd, config.ForStore...)
	email := cmd.Flags().String("email", "", "email address of the account (required)")
	stdin := cmd.Flags().Bool("password-stdin", false, "read the password from standard input (required without --link)")
	link := cmd.Flags().Bool("link", false, "print the path of a link, valid once and for 1 hour, with which the person sets a new password")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "link")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var password string
		var err error
		if !*link {
			password, err = readPassword(cmd.InOrStdin(), *stdin)
		}
		if err != nil {
			return err
		}
		return withAccounts(cmd, func(ctx context.Context, store *store.Store, a *policies.Accounts) error {
			u, err := store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(*email)))
			if err != nil {
				return err
			}
			if *link {
				l, err := a.CreatePasswordLink(ctx, policies.System("admin"), u.ID)
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), l.Path())
				}
				return err
			}
			return a.ResetPassword(ctx, policies.System("admin"), u.ID, password)
		})
	}
	return cmd
}

func newResetSecondFactorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reset-second-factor EMAIL",
		Short: "Remove the second factor and the passkeys of an account; ends its sessions", Args: cobra.ExactArgs(1)}
	config.AddFlags(cmd, config.ForStore...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withAccounts(cmd, func(ctx context.Context, store *store.Store, a *policies.Accounts) error {
			u, err := store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(args[0])))
			if err != nil {
				return err
			}
			if err := a.ResetSecondFactor(ctx, policies.System("admin"), u.ID); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Removed the second factor and the passkeys of %s\n", u.Email)
			return nil
		})
	}
	return cmd
}

// readPassword reads one line. A password is never an argument: all users of
// the machine can read command lines.
func readPassword(in io.Reader, asked bool) (string, error) {
	if !asked {
		return "", config.Usagef("--password-stdin is required: the password is read from standard input")
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
