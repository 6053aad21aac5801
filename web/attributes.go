package web

import (
	"time"

	"github.com/a-h/templ"
)

func inputType(f field) string {
	if f.Type == "" {
		return "text"
	}
	return f.Type
}

// inputValue is what an input shows; a password never comes back.
func inputValue(f Form, name string, spec field) string {
	if spec.Type == "password" {
		return ""
	}
	value := f.Value(name)
	if spec.Type == "date" && len(value) > len(time.DateOnly) { // a moment that was posted by a button
		value = value[:len(time.DateOnly)]
	}
	return value
}

func inputAttributes(f field) templ.Attributes {
	a := templ.Attributes{}
	if f.Autocomplete != "" {
		a["autocomplete"] = f.Autocomplete
	} else if f.Type != "password" {
		a["autocomplete"] = "off"
	}
	if f.Inputmode != "" {
		a["inputmode"] = f.Inputmode
	}
	if f.Placeholder != "" {
		a["placeholder"] = f.Placeholder
	}
	if f.Mono {
		a["spellcheck"] = "false"
	}
	return a
}

// described ties an input to its hint and its error.
func described(name string, hint, failed bool) templ.Attributes {
	a := templ.Attributes{}
	if by := describedBy(name, hint, failed); by != "" {
		a["aria-describedby"] = by
	}
	if failed {
		a["aria-invalid"] = "true"
	}
	return a
}
