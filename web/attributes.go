package web

import "github.com/a-h/templ"

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
	return f.Value(name)
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
