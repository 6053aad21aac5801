package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// AddFlags adds --config and the flags of the named settings to cmd; without names
// the flags of all settings of “weir serve”.
func AddFlags(cmd *cobra.Command, only ...string) {
	cmd.Flags().Var(&textFlag{kind: "FILE"}, "config", "YAML file with settings, named like the flags [WEIR_CONFIG]")
	for _, s := range settings {
		if len(only) == 0 && !s.notServe || slices.Contains(only, s.name) {
			cmd.Flags().Var(&textFlag{text: s.defaultText, kind: s.kind}, s.name, s.help+" ["+s.env()+"]")
		}
	}
}

// textFlag accepts any text: Load checks the values and reports all problems at
// once.
type textFlag struct{ text, kind string }

// IsFlag reports whether [AddFlags] has added the flag.
func IsFlag(f *pflag.Flag) bool {
	_, ok := f.Value.(*textFlag)
	return ok
}

func (f *textFlag) String() string     { return f.text }
func (f *textFlag) Set(s string) error { f.text = s; return nil }
func (f *textFlag) Type() string       { return f.kind }

// Load reads the settings that AddFlags added to cmd. Flags take precedence over the
// environment, then the file, then the defaults. The error is a *UsageError.
func Load(cmd *cobra.Command) (Config, error) { return loadFrom(cmd, os.LookupEnv) }

func loadFrom(cmd *cobra.Command, lookupEnv func(string) (string, bool)) (c Config, err error) {
	values := map[string]string{}
	configFile := resolve(cmd.Flags().Lookup("config"), setting{name: "config"}, lookupEnv, nil)
	c.File = configFile.text
	file, problems := readConfigFile(configFile)
	for _, s := range settings {
		from := source{s.defaultText, s.name}
		if flag := cmd.Flags().Lookup(s.name); flag != nil {
			from = resolve(flag, s, lookupEnv, file)
		}
		if err := s.set(&c, from.text); err != nil {
			problems = append(problems, from.origin+": "+err.Error())
		}
		values[s.name] = from.text
	}
	problems = slices.Concat(problems, c.completeIngress(), c.checkClusterAgents(), c.checkReservations(), c.completeOIDC(),
		c.completeMetrics(), c.completeMail())
	if len(problems) > 0 {
		return Config{}, &UsageError{Title: "invalid configuration", Problems: problems}
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(os.Geteuid(), lookupEnv)
	}
	c.completePaths()
	c.changed = changed(values)
	return c, nil
}

// changed returns the settings that differ from their defaults; of a secret only that
// it is set.
func changed(values map[string]string) map[string]string {
	list := map[string]string{}
	for _, s := range settings {
		switch text := values[s.name]; {
		case text == s.defaultText:
		case s.secret:
			list[s.name] = "(set)"
		default:
			list[s.name] = text
		}
	}
	return list
}

// source is the text of a setting and its origin, for errors.
type source struct{ text, origin string }

// resolve returns the text of a setting. An empty environment variable counts as
// unset: charts and unit files often set empty ones.
func resolve(flag *pflag.Flag, s setting, lookupEnv func(string) (string, bool), file map[string]source) source {
	if flag.Changed {
		return source{flag.Value.String(), "--" + s.name}
	}
	if text, _ := lookupEnv(s.env()); text != "" {
		return source{text, s.env()}
	}
	if from, ok := file[s.name]; ok {
		return from
	}
	return source{s.defaultText, s.name}
}

func defaultDataDir(uid int, lookupEnv func(string) (string, bool)) string {
	if uid == 0 {
		return "/var/lib/weir"
	}
	if dir, _ := lookupEnv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weir")
	}
	home, _ := lookupEnv("HOME")
	return filepath.Join(home, ".local", "share", "weir")
}

// readConfigFile reads the YAML mapping of settings and reports its problems.
func readConfigFile(from source) (map[string]source, []string) {
	if from.text == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(from.text)
	if err != nil {
		return nil, []string{from.origin + ": " + err.Error()}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, []string{from.text + ": " + err.Error()}
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, []string{from.text + ": must be a mapping of settings, such as “listen: 127.0.0.1:8080”"}
	}
	return readMapping(from.text, doc.Content[0].Content)
}

// readMapping reads a YAML mapping; nodes are its keys, each with its value.
func readMapping(file string, nodes []*yaml.Node) (found map[string]source, problems []string) {
	found = map[string]source{}
	for pair := range slices.Chunk(nodes, 2) {
		key, value := pair[0], pair[1]
		at := fmt.Sprintf("%s:%d: %s", file, key.Line, key.Value)
		_, duplicate := found[key.Value]
		switch {
		case !isSetting(key.Value):
			problems = append(problems, at+": unknown setting")
		case duplicate:
			problems = append(problems, at+": is set more than once")
		case value.Kind != yaml.ScalarNode:
			problems = append(problems, at+": must be a single value")
		case value.Tag != "!!null":
			found[key.Value] = source{value.Value, at}
		}
	}
	return found, problems
}

func isSetting(name string) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return s.name == name })
}
