package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

// Form is the values of a form and their errors, so that a refused form is shown as it
// was sent. Names are those of the inputs.
type Form struct {
	Values  map[string]string
	Errors  map[string]models.Text
	Message models.Text // about the whole form
	Version int64       // of the thing edited; 0 for a new one
	labels  map[string]string
}

// labelled is the form with inputs that are described, in fields, under
// another name than their own.
func (f Form) labelled(labels map[string]string) Form {
	f.labels = labels
	return f
}

func (f Form) labelOf(name string) string { return cmp.Or(f.labels[name], name) }

// ExactSuffix ends the name of the time of which a date shows only the day.
const ExactSuffix = ".exact"

// Refuse puts an error's message and fields into a form.
func (f Form) Refuse(err error) Form {
	var e *models.Error
	if !errors.As(err, &e) {
		f.Message = models.Say("Something went wrong. No changes were made.")
		return f
	}
	f.Message = e.Message
	f.Errors = make(map[string]models.Text, len(e.Fields))
	for _, field := range e.Fields {
		if _, seen := f.Errors[field.Name]; !seen {
			f.Errors[field.Name] = field.Reason
		}
	}
	return f
}

// Value is the value of a field.
func (f Form) Value(name string) string { return f.Values[name] }

// Checked reports whether a checkbox is set.
func (f Form) Checked(name string) bool {
	switch f.Values[name] {
	case "", "0", "false", "off":
		return false
	}
	return true
}

// failed reports whether a field was refused.
func (f Form) failed(name string) bool {
	_, failed := f.Errors[name]
	return failed
}

// Failed reports whether the form was refused.
func (f Form) Failed() bool { return len(f.Errors) > 0 || !f.Message.Empty() }

// refused lists the names of refused fields in a steady order.
func (f Form) refused() []string { return slices.Sorted(maps.Keys(f.Errors)) }

// anyIn reports whether one of the named fields has a value or an error, so that their
// part of the form must be open.
func (f Form) anyIn(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return f.failed(name) || f.Values[name] != ""
	})
}

// Option is one choice of a select.
type Option struct {
	Value, Label string
}

// Options are names to choose from, and a chosen one that may not be among them. The first is none, unless
// that has no label.
func Options(none string, names []string, chosen string) (list []Option) {
	if none != "" {
		list = append(list, Option{Label: none})
	}
	if chosen != "" && !slices.Contains(names, chosen) {
		names = append(slices.Clip(names), chosen)
	}
	for _, name := range names {
		list = append(list, Option{name, name})
	}
	return list
}

// submitLabel is the button of a form that creates what its title says or, with an ID, changes it.
func submitLabel(ctx context.Context, id int64, title string) string {
	if id == 0 {
		return title
	}
	return T(ctx, "Save")
}

// inputValue is the value that an input shows; empty for passwords.
func inputValue(f Form, name string, spec field) string {
	if spec.Type == "password" {
		return ""
	}
	value := f.Value(name)
	if end, err := time.Parse(time.RFC3339, value); err == nil && spec.Type == "date" { // an end that was posted by a button
		value = day(models.LastDay(end))
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

// describedAttributes ties an input to its hint and its error.
func describedAttributes(name string, hint, failed bool) templ.Attributes {
	a, ids := templ.Attributes{}, []string{}
	if hint {
		ids = append(ids, inputID(name)+"-hint")
	}
	if failed {
		ids = append(ids, inputID(name)+"-error")
		a["aria-invalid"] = "true"
	}
	if len(ids) > 0 {
		a["aria-describedby"] = strings.Join(ids, " ")
	}
	return a
}

// afterLabel is a reason without the label that it begins with, where the label stands before it.
func afterLabel(label, reason string) string {
	if rest, begins := strings.CutPrefix(reason, label); begins {
		if text := strings.TrimLeft(rest, ":： "); text != rest {
			return text
		}
	}
	return reason
}

// problemAt is a problem as it stands at its input, without the name of the input or of its
// resource.
func problemAt(ctx context.Context, name string, spec field, problem models.Text) string {
	reason, names := begun(ctx, problem), []string{TT(ctx, spec.Label)}
	if name == "cores" || name == "gpus" {
		names = append(names, TT(ctx, (models.Resources{}).Amounts()[0].Label))
	}
	for _, label := range names {
		if rest := afterLabel(label, reason); rest != reason {
			return rest
		}
	}
	return reason
}
