package config

import "strings"

// setting is one of them. Its name is the flag and the YAML key; the
// environment variable follows from it.
type setting struct {
	name   string
	kind   string // what --help calls its value
	def    string // as a user would write it
	help   string
	secret bool // never shown; its set must not repeat the value in an error
	agent  bool // of “weir agent” alone
	set    func(*Config, string) error
}

func (s setting) env() string {
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// into makes a setting's set from the field it fills and the parser that
// checks it.
func into[T any](field func(*Config) *T, parse func(string) (T, error)) func(*Config, string) error {
	return func(c *Config, text string) error {
		v, err := parse(text)
		if err == nil {
			*field(c) = v
		}
		return err
	}
}
