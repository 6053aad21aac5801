package config

import "strings"

// setting is one setting. Its name is the flag and the YAML key, from which the
// environment variable is derived.
type setting struct {
	name        string
	kind        string // of the value, for --help
	defaultText string // default, as text
	help        string
	secret      bool // not logged; errors of set must not contain the value
	notServe    bool // of other commands than “weir serve” only
	set         func(*Config, string) error
}

func (s setting) env() string {
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// into returns a setting's set from its field and its parser.
func into[T any](field func(*Config) *T, parse func(string) (T, error)) func(*Config, string) error {
	return func(c *Config, text string) error {
		v, err := parse(text)
		if err == nil {
			*field(c) = v
		}
		return err
	}
}
