package config

import "slices"

var settings = slices.Concat(serverSettings, quotaSettings, kubeSettings, agentsSettings, agentSettings, oidcSettings, notificationSettings, logSettings)

// ForAgent are the settings of an agent.
var ForAgent = []string{"data-dir", "simulate-gpus", "machine-id-file", "server", "code", "cluster-token-file", "authority-certificate",
	"state-dir", "name", "log-level", "log-format"}

// ForStore are the settings of a command on the database.
var ForStore = []string{"data-dir", "database-url", "log-level", "log-format"}
