package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/pool/providers"
)

const providersPath = "/pool/providers"

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
	return remoteCommand("show PROVIDER", "Show a provider, its terms and its GPUs", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			id, err := s.providerID(args[0])
			if err != nil {
				return err
			}
			return send(s, http.MethodGet, providerPath(id), nil, "", providerTable)
		})
}

// providerID finds a provider by its id, or by its name.
func (s *session) providerID(ref string) (int64, error) {
	return resolve(s, ref, providersPath, nil, func(p handlers.Provider) int64 {
		if p.Name != ref {
			return 0
		}
		return p.ID
	}, "no provider named %q; see “weir provider list”")
}

// provider reads a provider by its id, or by its name.
func (s *session) provider(ref string) (p handlers.Provider, read response, err error) {
	id, err := s.providerID(ref)
	if err != nil {
		return p, read, err
	}
	return fetch[handlers.Provider](s, s.client, providerPath(id))
}

func providerPath(id int64) string { return fmt.Sprintf("%s/%d", providersPath, id) }

// providerCommand makes a command that changes a provider.
func providerCommand(name, short string, run func(s *session, p handlers.Provider, read response) error) *cobra.Command {
	return remoteCommand(name+" PROVIDER", short, cobra.ExactArgs(1), func(s *session, args []string) error {
		p, read, err := s.provider(args[0])
		if err != nil {
			return err
		}
		return run(s, p, read)
	})
}

// act posts an action on the version of a provider that was read.
func (s *session) act(p handlers.Provider, read response, action string, body any) error {
	return send(s, http.MethodPost, providerPath(p.ID)+"/"+action, body, read.etag,
		func(t *table, now handlers.Provider) { t.line("%s", statusLine(now)) })
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
	return providerCommand(action, short, func(s *session, p handlers.Provider, read response) error { return s.act(p, read, action, nil) })
}

func newRecallCommand() *cobra.Command {
	var grace, reason string
	cmd := remoteCommand("recall PROVIDER", "Recall a provider: users are notified, and their shares end after the grace period",
		cobra.ExactArgs(1),
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
				p.Name, p.ID, count(p.Users, "person", "people"), minutes(wait)); err != nil {
				return err
			}
			return s.act(p, read, "recall", providers.RecallInput{GraceMinutes: wait, Reason: reason})
		})
	cmd.Flags().StringVar(&grace, "grace", "30m", "`DURATION` until the shares end, in whole minutes")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` shown to the users")
	return confirmable(cmd)
}

func newRevokeCommand() *cobra.Command {
	return confirmable(providerCommand("revoke", "Revoke the agent of a provider", func(s *session, p handlers.Provider, read response) error {
		if err := s.confirm("This revokes the agent of %s (provider %d) until it is authorized again. Its GPUs have shares of %s.",
			p.Name, p.ID, count(p.Users, "person", "people")); err != nil {
			return err
		}
		return s.act(p, read, "revoke", nil)
	}))
}

func newRemoveCommand() *cobra.Command {
	return confirmable(providerCommand("remove", "Remove a provider without shares from the pool",
		func(s *session, p handlers.Provider, read response) error {
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
