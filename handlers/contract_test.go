package handlers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is an OpenAPI document with which responses are compared: clients are
// generated of it.
type contract struct {
	paths map[string]map[string]struct { // by path and method
		Responses map[string]struct { // by status
			Content map[string]any // by media type
		}
	}
	mu       sync.Mutex // of compiler
	compiler *jsonschema.Compiler
}

func newContract(document []byte) (*contract, error) {
	var doc struct{ Paths json.RawMessage }
	c := &contract{compiler: jsonschema.NewCompiler()}
	c.compiler.AssertFormat()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err == nil {
		err = c.compiler.AddResource("weir:openapi", value)
	}
	if err == nil {
		err = json.Unmarshal(document, &doc)
	}
	if err == nil {
		err = json.Unmarshal(doc.Paths, &c.paths)
	}
	return c, err
}

// served is the contract of the App.
var served = sync.OnceValues(func() (*contract, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	return newContract(doc)
})

// templateOf is the path in the document that a path matches, or "". Of several, the one
// with most words of its own counts.
func (c *contract) templateOf(path string) (template string) {
	asked, best := strings.Split(path, "/"), -1
	for candidate := range c.paths {
		if n := wordsInCommon(strings.Split(candidate, "/"), asked); n > best {
			best, template = n, candidate
		}
	}
	return template
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

// check returns how a response differs from the document. A request that is none of an
// operation is not described.
func (c *contract) check(method, path string, status int, header http.Header, body []byte) error {
	template, method := c.templateOf(path), strings.ToLower(method)
	op, ok := c.paths[template][method]
	if !ok {
		return nil
	}
	response, ok := op.Responses[strconv.Itoa(status)]
	if !ok {
		return fmt.Errorf("the status is not in the document: %.300s", body)
	}
	if method == "head" {
		return nil // it never has a body
	}
	if len(response.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("the document describes no body: %.300s", body)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if _, binary := response.Content["application/octet-stream"]; binary { // of any type, and of several ranges a multipart
		return nil
	}
	if _, ok := response.Content[kind]; !ok {
		return fmt.Errorf("the media type %s is not in the document", kind)
	}
	if !strings.HasSuffix(kind, "json") {
		return nil
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace
	at := fmt.Sprintf("paths/%s/%s/responses/%d/content/%s/schema", escape(template), method, status, escape(kind))
	schema, err := c.schema("weir:openapi#/" + at)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w in %.300s", err, body)
	}
	return schema.Validate(value)
}

func (c *contract) schema(location string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiler.Compile(location)
}

// copied is a response that is kept as it is written.
type copied struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (w *copied) Write(b []byte) (int, error) {
	w.body.Write(b)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets streams flush. http.ResponseController calls it.
func (w *copied) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// plain is the body without its compression.
func (w *copied) plain() ([]byte, error) {
	if w.Header().Get("Content-Encoding") != "gzip" {
		return w.body.Bytes(), nil
	}
	r, err := gzip.NewReader(&w.body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

const (
	digits      = "0123456789"
	capitals    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	smalls      = "abcdefghijklmnopqrstuvwxyz"
	secretChars = digits + capitals + smalls + "_-"
)

// inSecret is the characters of a secret, by their code.
var inSecret = func() (is [128]bool) {
	for _, c := range secretChars {
		is[c] = true
	}
	return is
}()

// secretOf returns what looks like a secret of [policies.NewSecret], also as an access token: 43 characters of all kinds.
func secretOf(body []byte) string {
	for word := range bytes.FieldsFuncSeq(body, func(c rune) bool { return c >= rune(len(inSecret)) || !inSecret[c] }) {
		if word = bytes.TrimPrefix(word, []byte("weir_")); len(word) == 43 && bytes.ContainsAny(word, digits) &&
			bytes.ContainsAny(word, capitals) && bytes.ContainsAny(word, smalls) {
			return string(word)
		}
	}
	return ""
}

// holdToContract compares every response of the API with the document, whatever its status
// and whoever asks. Responses with secrets, also pages, must be of routes that are not compressed.
func holdToContract(t testing.TB, app *App) {
	t.Helper()
	if _, measured := t.(*testing.B); measured {
		return
	}
	c := must(served())(t)
	app.echo.Pre(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ec echo.Context) error {
			r := ec.Request()
			path, ofAPI := strings.CutPrefix(r.URL.Path, apiPrefix)
			if isHead(r) || r.URL.Path == eventsPath {
				return next(ec)
			}
			w := &copied{ResponseWriter: ec.Response().Writer}
			ec.Response().Writer = w
			if err := next(ec); err != nil {
				ec.Error(err)
			}
			body, err := w.plain()
			if secret := secretOf(body); secret != "" && !hasSecrets(ec.Path()) && !strings.Contains(r.URL.String(), secret) {
				t.Errorf("%s %s renders %s, and may be compressed: hasSecrets does not list %s", r.Method, r.URL, secret, ec.Path())
			}
			if err == nil && ofAPI {
				err = c.check(r.Method, path, ec.Response().Status, w.Header(), body)
			}
			if err != nil && r.Context().Err() == nil {
				t.Errorf("%s %s answers %d, but not as the document says: %v", r.Method, r.URL, ec.Response().Status, err)
			}
			return nil
		}
	})
}

// A document that does not describe a response is found to be wrong.
func TestContractFindsDifferences(t *testing.T) {
	w := newWorld(t)
	me, missing := w.get(w.member, "/me"), w.want(404, w.member, "GET", "/projects/999", "")
	raw := must(document())(t)
	for name, c := range map[string]struct {
		old, new string
		wrong    bool
	}{
		"as it is":              {"{", "{", false},
		"another type":          {`identifier.","type":"string"`, `identifier.","type":"integer"`, true},
		"another property":      {`"email"`, `"mail"`, true},
		"a status is missing":   {`"200":{"content"`, `"203":{"content"`, true},
		"a kind is missing":     {`"not_found"`, `"missing"`, true},
		"another media type":    {`"application/problem+json"`, `"application/problem"`, true},
		"a refusal is missing":  {`"404"`, `"410"`, true},
		"a problem has no kind": {`"kind"`, `"sort"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err != nil {
				t.Fatal(err)
			}
			changed := strings.ReplaceAll(compact.String(), c.old, c.new)
			if c.wrong && changed == compact.String() {
				t.Fatalf("the document has no %s", c.old)
			}
			doc := must(newContract([]byte(changed)))(t)
			err := doc.check("GET", "/me", me.status, me.header, []byte(me.raw))
			if err == nil {
				err = doc.check("GET", "/projects/999", missing.status, missing.header, []byte(missing.raw))
			}
			if (err != nil) != c.wrong {
				t.Errorf("found: %v", err)
			}
		})
	}
}
