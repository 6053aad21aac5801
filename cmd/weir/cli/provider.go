package cli

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/pool/providers"
)

const providersPath = "/pool/providers"

func newProviderCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "provider", Short: "Manage providers, the machines that lend GPUs"}
	cmd.AddCommand(newProviderListCommand(), newProviderShowCommand(), newProviderSetCommand(),
		newProviderActionCommand("drain", "Stop new allocations on a provider; existing ones continue"),
		newProviderActionCommand("resume", "End a drain, or cancel a recall"),
		newProviderActionCommand("accept", "Authorize the GPUs that the agent of a provider reports now"),
		newRecallCommand(), newRevokeCommand(), newRemoveCommand())
	return cmd
}

func newProviderListCommand() *cobra.Command {
	return remoteCommand("list", "List providers", cobra.NoArgs, func(s *session, _ []string) error {
		all, raw, err := fetchAll[handlers.Provider](s, s.client, providersPath, nil)
		if err != nil {
			return err
		}
		return s.show(raw, func(t *table) { providersTable(t, all) })
	})
}

func newProviderShowCommand() *cobra.Command {
	return remoteCommand("show PROVIDER", "Show a provider, its terms and its GPUs", cobra.ExactArgs(1), func(s *session, args []string) error {
		p, a, err := s.provider(args[0])
		if err != nil {
			return err
		}
		return s.show(a.body, func(t *table) { providerTable(t, p) })
	})
}

// provider finds one by its id, or by its name.
func (s *session) provider(ref string) (p handlers.Provider, a response, err error) {
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		if id, err = s.providerNamed(ref); err != nil {
			return p, a, err
		}
	}
	return fetch[handlers.Provider](s, s.client, providerPath(id))
}

func providerPath(id int64) string { return fmt.Sprintf("%s/%d", providersPath, id) }

func (s *session) providerNamed(name string) (int64, error) {
	all, _, err := fetchAll[handlers.Provider](s, s.client, providersPath, nil)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.Name == name {
			return p.ID, nil
		}
	}
	return 0, notFound("no provider named %q; see “weir provider list”", name)
}

// act does one thing to the version of a provider that was read.
func (s *session) act(p handlers.Provider, read response, action string, body any) error {
	return send(s, http.MethodPost, providerPath(p.ID)+"/"+action, body, read.etag, func(t *table, now handlers.Provider) { t.line("%s", statusLine(now)) })
}

// statusLine is a provider's state in one line.
func statusLine(p handlers.Provider) string {
	text := fmt.Sprintf("%s (provider %d) is %s", p.Name, p.ID, p.State)
	switch {
	case p.RecallAt != nil:
		text += ": its shares end at " + moment(*p.RecallAt)
	case p.Reason != "":
		text += ": " + p.Reason
	}
	return text
}

func newProviderActionCommand(action, short string) *cobra.Command {
	return remoteCommand(action+" PROVIDER", short, cobra.ExactArgs(1), func(s *session, args []string) error {
		p, read, err := s.provider(args[0])
		if err != nil {
			return err
		}
		return s.act(p, read, action, nil)
	})
}

func newRecallCommand() *cobra.Command {
	var grace, reason string
	cmd := remoteCommand("recall PROVIDER", "Recall a provider: users are notified, and their shares end after the grace period", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			wait, err := parseMinutes(grace)
			if err != nil {
				return config.Usagef("--grace: %v", err)
			}
			p, read, err := s.provider(args[0])
			if err != nil {
				return err
			}
			if err := s.confirm("Recalling %s (provider %d) notifies %s with shares there, and stops their workspaces in %s.",
				p.Name, p.ID, count(p.Holders, "person", "people"), minutes(wait)); err != nil {
				return err
			}
			return s.act(p, read, "recall", providers.RecallInput{GraceMinutes: wait, Reason: reason})
		})
	cmd.Flags().StringVar(&grace, "grace", "30m", "`DURATION` until the shares end, in whole minutes")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` shown to the users")
	return confirmable(cmd)
}

func newRevokeCommand() *cobra.Command {
	return confirmable(remoteCommand("revoke PROVIDER", "Revoke the agent of a provider", cobra.ExactArgs(1), func(s *session, args []string) error {
		p, read, err := s.provider(args[0])
		if err != nil {
			return err
		}
		if err := s.confirm("This revokes the agent of %s (provider %d) until it is authorized again. Its GPUs have shares of %s.",
			p.Name, p.ID, count(p.Holders, "person", "people")); err != nil {
			return err
		}
		return s.act(p, read, "revoke", nil)
	}))
}

func newRemoveCommand() *cobra.Command {
	return confirmable(remoteCommand("remove PROVIDER", "Remove a provider without shares from the pool", cobra.ExactArgs(1), func(s *session, args []string) error {
		p, read, err := s.provider(args[0])
		if err != nil {
			return err
		}
		if err := s.confirm("This removes %s (provider %d) with %s from the pool, and revokes its agent.",
			p.Name, p.ID, count(len(present(p)), "GPU", "GPUs")); err != nil {
			return err
		}
		a, err := s.call(s, http.MethodDelete, providerPath(p.ID), nil, read.etag)
		if err != nil {
			return err
		}
		return s.show(a.body, func(t *table) { t.line("%s (provider %d) is removed", p.Name, p.ID) })
	}))
}
