package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

var described = sync.OnceValue(describe)

// operationAt is the operation of the document that answers a request; nil if there is none.
// Of several paths that match, the one with most words of its own counts.
func operationAt(method, path string) (op *huma.Operation) {
	path, _, _ = strings.Cut(path, "?")
	asked, best := strings.Split(path, "/"), -1
	for template, item := range described().Paths {
		if n := wordsInCommon(strings.Split(template, "/"), asked); n > best {
			best = n
			op = map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete}[method]
		}
	}
	return op
}

// wordsInCommon counts the segments of a path that are those of the template; -1 if the
// template does not match.
func wordsInCommon(template, path []string) (n int) {
	if len(template) != len(path) {
		return -1
	}
	for i, word := range template {
		switch {
		case word == path[i]:
			n++
		case !strings.HasPrefix(word, "{"):
			return -1
		}
	}
	return n
}

// followsDocument makes sure that a successful answer is as the document describes it:
// clients are generated of it.
func (w *world) followsDocument(method, path string, a answer) {
	op := operationAt(method, path)
	if op == nil || a.status >= http.StatusMultipleChoices {
		return
	}
	response := op.Responses[strconv.Itoa(a.status)]
	if response == nil {
		w.Errorf("%s %s answers %d, which is not in the document", method, path, a.status)
		return
	}
	content := response.Content["application/json"]
	if content == nil {
		return
	}
	var v any
	if err := json.Unmarshal([]byte(a.raw), &v); err != nil {
		w.Errorf("%s %s: %v in %s", method, path, err, a.raw)
		return
	}
	var result huma.ValidateResult
	huma.Validate(described().Components.Schemas, content.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &result)
	for _, problem := range result.Errors {
		w.Errorf("%s %s answers what the document does not allow: %v", method, path, problem)
	}
}
