package reference

import (
	"maps"
	"path"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

const jsonBody = "application/json"

// composer composes examples of bodies from the examples of their properties.
type composer struct {
	texts
	schemas huma.Registry
}

// addExamples adds examples of the request and of the successful responses.
func (c composer) addExamples(op *huma.Operation) {
	if op.RequestBody != nil {
		if body := op.RequestBody.Content[jsonBody]; body != nil {
			var given bool
			if body.Example, given = c.Requests[op.OperationID]; !given {
				body.Example = c.value(body.Schema)
			}
		}
	}
	for _, status := range []string{"200", "201", "202"} {
		if r := op.Responses[status]; r != nil && r.Content[jsonBody] != nil {
			r.Content[jsonBody].Example = c.value(r.Content[jsonBody].Schema)
		}
	}
}

// value is an example of a schema. Strings and numbers without an example are null,
// which no schema accepts.
func (c composer) value(s *huma.Schema) any {
	switch {
	case s.Ref != "":
		return c.object(path.Base(s.Ref), c.schemas.SchemaFromRef(s.Ref))
	case len(s.AllOf) > 0:
		return c.all(s.AllOf)
	case len(s.OneOf) > 0:
		return c.value(s.OneOf[0])
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == huma.TypeObject:
		return c.object("", s)
	case s.Type == huma.TypeArray:
		return []any{c.value(s.Items)}
	case s.Type == huma.TypeBoolean:
		return false
	case s.Format == "date-time":
		return "2027-03-01T09:00:00Z"
	}
	return nil
}

// all is an example with the properties of several schemas.
func (c composer) all(parts []*huma.Schema) any {
	whole := map[string]any{}
	for _, part := range parts {
		if o, ok := c.value(part).(map[string]any); ok {
			maps.Copy(whole, o)
		}
	}
	return whole
}

func (c composer) object(name string, s *huma.Schema) any {
	o := map[string]any{}
	for property, p := range s.Properties {
		example, given := find(c.texts, c.Examples, name, property)
		required := slices.Contains(s.Required, property)
		switch {
		case given && example == nil && !required:
		case given && example == nil && p.Type == huma.TypeArray:
			o[property] = []any{}
		case given && c.fits(p, example):
			o[property] = example
		case given && p.Type == huma.TypeArray && c.fits(p, []any{example}):
			o[property] = []any{example}
		case required || given || p.Type == "":
			o[property] = c.value(p)
		}
	}
	return o
}

// fits reports whether a value is valid for a schema, so that the example of a name is
// used where the name has this type.
func (c composer) fits(s *huma.Schema, v any) bool {
	var result huma.ValidateResult
	huma.Validate(c.schemas, s, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &result)
	return len(result.Errors) == 0
}
