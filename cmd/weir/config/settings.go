package config

import (
	"fmt"
	"strings"
)

// groups are the settings in the order of the reference.
var groups = []struct {
	title    string
	settings []setting
}{
	{"Server", serverSettings},
	{"Quotas", quotaSettings},
	{"Workspaces", workspaceSettings},
	{"Reservations", reservationSettings},
	{"Shared files", storageSettings},
	{"Notifications and email", notificationSettings},
	{"Single sign-on", oidcSettings},
	{"Agents of other machines", agentsSettings},
	{"Kubernetes", kubeSettings},
	{"Agent", agentSettings},
	{"NFS server", nfsSettings},
	{"Logs", logSettings},
}

var settings = func() (all []setting) {
	for _, g := range groups {
		all = append(all, g.settings...)
	}
	return all
}()

// ForAgent are the settings of an agent.
var ForAgent = []string{"data-dir", "simulate-gpus", "machine-id-file", "server", "code", "cluster-token-file", "authority-certificate",
	"state-dir", "name", "log-level", "log-format"}

// ForNFS are the settings of an NFS server.
var ForNFS = []string{"data-dir", "shared-dir", "nfs-listen", "nfs-path", "nfs-clients", "nfs-server-clients", "log-level", "log-format"}

// ForStore are the settings of a command on the database.
var ForStore = []string{"data-dir", "database-url", "log-level", "log-format"}

// ForRestore are the settings of a command that restores a backup.
var ForRestore = []string{"data-dir", "database-url", "sandbox-uid", "id-range", "log-level", "log-format"}

// Reference lists all settings as Markdown: a section with a table for each group.
func Reference() string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| setting | value | default | description |\n| --- | --- | --- | --- |\n", g.title)
		for _, s := range g.settings {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.name, Cell(s.kind), code(s.defaultText), Cell(s.help))
		}
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + Cell(text) + "`"
}

// Cell escapes a text for a table of Markdown.
func Cell(text string) string { return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text) }
