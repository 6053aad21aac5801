package config

import "strings"

// Choice is a flag with a fixed set of values.
type Choice struct {
	Value   string
	Allowed []string
}

func (c *Choice) String() string { return c.Value }
func (c *Choice) Type() string   { return strings.Join(c.Allowed, "|") }

// Set rejects other values.
func (c *Choice) Set(text string) (err error) {
	c.Value, err = oneOf(c.Allowed...)(text)
	return err
}
