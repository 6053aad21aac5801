package handlers

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"weir/handlers/reference"
	"weir/models"
	"weir/web"
)

// openAPIPage shows the document of the API to people.
func (a *App) openAPIPage(c echo.Context) error {
	return a.render(c, http.StatusOK, web.APIPage(apiView()))
}

// apiView is the OpenAPI document as its page shows it.
var apiView = sync.OnceValue(func() web.APIView {
	doc := describe()
	v := web.APIView{Title: doc.Info.Title, Version: doc.Info.Version, Description: apiDescription, Spec: apiDocument}
	for _, tag := range apiTags {
		v.Groups = append(v.Groups, web.APIGroup{Tag: tag.name, Description: tag.description, Operations: operationsOf(doc, tag.name.String())})
	}
	return v
})

func operationsOf(doc *huma.OpenAPI, tag string) (list []web.APIOperation) {
	for op := range reference.Operations(doc) {
		if slices.Contains(op.Tags, tag) {
			list = append(list, operationView(doc.Components.Schemas, op))
		}
	}
	return list
}

func operationView(schemas huma.Registry, op *huma.Operation) web.APIOperation {
	v := web.APIOperation{ID: op.OperationID, Method: op.Method, Path: apiPrefix + op.Path}
	v.Summary, _ = op.Metadata[summaryKey].(models.Text)
	for _, p := range op.Parameters {
		if p.Ref != "" { // If-None-Match, described for all
			continue
		}
		v.Parameters = append(v.Parameters, web.APIField{Name: p.Name, In: p.In, Type: typeOf(schemas, p.Schema), Required: p.Required,
			Description: p.Description})
	}
	if op.RequestBody != nil {
		v.Body = fieldsOf(schemas, op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		v.Responses = append(v.Responses, web.APIResponse{Status: status, Description: r.Description, Fields: fieldsOf(schemas, r.Content)})
	}
	return v
}

func fieldsOf(schemas huma.Registry, content map[string]*huma.MediaType) (fields []web.APIField) {
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		fields = append(fields, properties(schemas, content[kind].Schema, "")...)
	}
	return fields
}

// properties lists a schema's fields, those of objects inside it too, with
// dotted names.
func properties(schemas huma.Registry, s *huma.Schema, prefix string) (fields []web.APIField) {
	s = resolve(schemas, s)
	for s != nil && s.Type == huma.TypeArray {
		s = resolve(schemas, s.Items)
	}
	if s == nil || strings.Count(prefix, ".") > 3 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		fields = append(fields, web.APIField{Name: prefix + name, Type: typeOf(schemas, p), Required: slices.Contains(s.Required, name),
			Description: p.Description})
		inner := prefix + name + "."
		if r := resolve(schemas, p); r != nil && r.Type == huma.TypeArray {
			inner = prefix + name + "[]."
		}
		fields = append(fields, properties(schemas, p, inner)...)
	}
	return fields
}

func resolve(schemas huma.Registry, s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// typeOf formats a schema's type: integer, string (date-time), array of object.
func typeOf(schemas huma.Registry, s *huma.Schema) string {
	switch s = resolve(schemas, s); {
	case s == nil || s.Type == "":
		return "any"
	case s.Type == huma.TypeArray:
		return "array of " + typeOf(schemas, s.Items)
	case s.Format == "date-time":
		return "string (date-time)"
	case len(s.Enum) > 0:
		return "string (" + enumOf(s.Enum) + ")"
	default:
		return s.Type
	}
}

func enumOf(values []any) string {
	var words []string
	for _, v := range values {
		if word, ok := v.(string); ok {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}
