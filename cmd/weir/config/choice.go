package config

import "strings"

// Choice is a flag that takes one of some words.
type Choice struct {
	Value   string
	Allowed []string
}

func (c *Choice) String() string { return c.Value }
func (c *Choice) Type() string   { return strings.Join(c.Allowed, "|") }

// Set refuses any other word.
func (c *Choice) Set(text string) (err error) {
	c.Value, err = oneOf(c.Allowed...)(text)
	return err
}
