package reference

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// Complete completes a document with registered operations and their schemas.
func Complete(doc *huma.OpenAPI) {
	t := load()
	addConditions(doc)
	for name, s := range doc.Components.Schemas.Map() {
		t.describeSchema(name, s)
	}
	c := composer{t, doc.Components.Schemas}
	for op := range Operations(doc) {
		t.describeOperation(op)
		c.addExamples(op)
	}
	for _, item := range doc.Webhooks {
		c.addExamples(item.Post)
	}
}

// Operations are the operations of a document by their paths.
func Operations(doc *huma.OpenAPI) iter.Seq[*huma.Operation] {
	return func(yield func(*huma.Operation) bool) {
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			item := doc.Paths[path]
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete, item.Head} {
				if op != nil && !yield(op) {
					return
				}
			}
		}
	}
}

func (t texts) describeSchema(name string, s *huma.Schema) {
	s.Description = t.Schemas[name]
	if strings.HasPrefix(name, "List") && s.Properties["items"] != nil {
		s.Description = "One page of a list."
	}
	for property, p := range s.Properties {
		if p.Description == "" {
			p.Description, _ = find(t, t.Properties, name, property)
		}
		p.Description = sentence(p.Description)
	}
}

// describeOperation shortens the summary to its first clause: the description has the
// rest.
func (t texts) describeOperation(op *huma.Operation) {
	op.Description = t.Operations[op.OperationID]
	if scope, ok := op.Extensions["x-required-scope"]; ok && op.Description != "" {
		op.Description += fmt.Sprintf(" An access token needs the scope `%s`.", scope)
	}
	op.Summary, _, _ = strings.Cut(op.Summary, ";")
	op.Summary, _, _ = strings.Cut(op.Summary, ":")
	for _, p := range op.Parameters {
		p.Description = sentence(p.Description)
	}
	for _, r := range op.Responses {
		for _, h := range r.Headers {
			h.Description = sentence(h.Description)
		}
	}
}

// sentence formats the fragment of a struct tag as a sentence. Names in code keep their
// spelling.
func sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if text == "" || strings.ContainsAny(first, "_/:=") && first != strings.TrimSuffix(first, ":")+":" {
		return withPeriod(text)
	}
	r, size := utf8.DecodeRuneInString(text)
	return withPeriod(string(unicode.ToUpper(r)) + text[size:])
}

func withPeriod(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// addConditions describes ETag, If-None-Match and 304 of all operations that get JSON or a
// calendar.
func addConditions(doc *huma.OpenAPI) {
	const tag, condition, unmodified = "ETag", "IfNoneMatch", "NotModified"
	text := &huma.Schema{Type: huma.TypeString}
	header := &huma.Param{Ref: "#/components/headers/" + tag}
	doc.Components.Headers = map[string]*huma.Header{tag: {Schema: text,
		Description: `Tag of the representation: "VERSION-HASH" of a resource with a version, otherwise "HASH". It is weak if the response is compressed.`}}
	if doc.Components.Parameters == nil {
		doc.Components.Parameters = map[string]*huma.Param{}
	}
	doc.Components.Parameters[condition] = &huma.Param{Name: "If-None-Match", In: "header", Schema: text,
		Description: "ETags of representations that the client has. If the current one is among them, the response is 304 without a body."}
	doc.Components.Responses = map[string]*huma.Response{unmodified: {Description: "Not Modified",
		Headers: map[string]*huma.Param{tag: header}}}
	for op := range Operations(doc) {
		ok := op.Responses["200"]
		if op.Method != http.MethodGet || ok == nil || ok.Content["application/json"] == nil && ok.Content["text/calendar"] == nil {
			continue
		}
		ok.Headers = map[string]*huma.Param{tag: header}
		op.Parameters = append(op.Parameters, &huma.Param{Ref: "#/components/parameters/" + condition})
		op.Responses["304"] = &huma.Response{Ref: "#/components/responses/" + unmodified}
	}
}
