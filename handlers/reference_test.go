package handlers

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"go.yaml.in/yaml/v3"

	"weir/models"
	"weir/models/store"
)

// walk calls visit for every object of a JSON document with its place.
func walk(place string, v any, visit func(place string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(place, v)
		for key, inner := range v {
			if key != "example" && key != "default" {
				walk(place+"/"+key, inner, visit)
			}
		}
	case []any:
		for _, inner := range v {
			walk(place+"/", inner, visit)
		}
	}
}

// Everything that has a name has a description, which is a sentence.
func TestAPIDocumentDescribesEverything(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(must(OpenAPI())(t), &doc); err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile(`^[^a-z].*\.$|^[a-z]+[_.:/=].*\.$|^[a-z]+ ?[;:].*\.$`)
	described := 0
	want := func(place string, object any) {
		o := object.(map[string]any)
		if o["$ref"] != nil && strings.Contains(o["$ref"].(string), "/parameters/") {
			return
		}
		described++
		if text, _ := o["description"].(string); !sentence.MatchString(text) {
			t.Errorf("%s is described as %q", place, text)
		}
	}
	for name, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		want("schema "+name, s)
	}
	walk("", doc, func(place string, o map[string]any) {
		if properties, ok := o["properties"].(map[string]any); ok && !strings.Contains(place, "/allOf/") {
			for name, p := range properties {
				want(place+" "+name, p)
			}
		}
		if parameters, ok := o["parameters"].([]any); ok {
			for _, p := range parameters {
				want(place+" parameter", p)
			}
		}
		if id, ok := o["operationId"].(string); ok {
			want("operation "+id, o)
		}
	})
	if described < 1200 {
		t.Errorf("only %d descriptions", described)
	}
}

// Every entry of the reference is used, so that none describes what is gone.
func TestReferenceHasNoLeftovers(t *testing.T) {
	raw, err := os.ReadFile("reference/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]map[string]any
	if err := yaml.Unmarshal(raw, &entries); err != nil {
		t.Fatal(err)
	}
	doc := describe()
	known := map[string]bool{}
	for name, s := range doc.Components.Schemas.Map() {
		known["schemas "+name] = true
		for property := range s.Properties {
			for _, chapter := range []string{"properties ", "examples "} {
				known[chapter+property], known[chapter+name+"."+property] = true, true
			}
		}
	}
	for _, op := range operationsOfDocument(t) {
		name := op.spec["operationId"].(string)
		known["operations "+name], known["requests "+name] = true, op.spec["requestBody"] != nil
	}
	for kind := range doc.Webhooks {
		known["webhooks "+kind] = true
	}
	for chapter, list := range entries {
		for name := range list {
			if chapter != "inherits" && !known[chapter+" "+name] {
				t.Errorf("%s: there is no %s", chapter, name)
			}
		}
	}
}

// bodies calls visit for every JSON body of the document.
func bodies(doc *huma.OpenAPI, visit func(op *huma.Operation, part string, body *huma.MediaType)) {
	visitOp := func(op *huma.Operation) {
		if op == nil {
			return
		}
		if op.RequestBody != nil && op.RequestBody.Content["application/json"] != nil {
			visit(op, "request", op.RequestBody.Content["application/json"])
		}
		for status, r := range op.Responses {
			if r.Content["application/json"] != nil {
				visit(op, status, r.Content["application/json"])
			}
		}
	}
	for _, items := range []map[string]*huma.PathItem{doc.Paths, doc.Webhooks} {
		for _, item := range items {
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
				visitOp(op)
			}
		}
	}
}

// problemsOf are the violations of a schema by a value as JSON.
func problemsOf(t *testing.T, doc *huma.OpenAPI, s *huma.Schema, raw []byte) []error {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	var result huma.ValidateResult
	huma.Validate(doc.Components.Schemas, s, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &result)
	return result.Errors
}

// Every body has an example, which its schema allows.
func TestExamplesAreValid(t *testing.T) {
	doc := describe()
	checked := 0
	bodies(doc, func(op *huma.Operation, part string, body *huma.MediaType) {
		if checked++; body.Example == nil {
			t.Errorf("%s %s has no example", op.OperationID, part)
			return
		}
		raw, err := json.Marshal(body.Example)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problemsOf(t, doc, body.Schema, raw) {
			t.Errorf("%s %s: %v in %s", op.OperationID, part, problem, raw)
		}
	})
	if checked < 150 {
		t.Errorf("only %d bodies", checked)
	}
}

// Examples that no server accepts before something else has happened: a link or a mail
// was sent, a membership has ended, the role has room for a service account, a reservation
// is there at that time.
var notSent = []string{"deploy-model", "create-split-preset", "create-completion", "create-chat-completion", "create-embeddings", "classify-images", "stop-workspaces", "start-run", "preview-run", "renew-run", "signal-run", "change-reservation", "preview-reservation-change", "rename-workspace", "rename-passkey", "accept-invitation", "set-password", "change-password", "forgot-password",
	"begin-second-factor", "begin-passkey", "add-passkey", "confirm-second-factor", "create-recovery-codes", "disable-second-factor", "create-handover",
	"create-service-account", "create-service-token", "create-directory", "copy-file", "move-file", "upload-file", "upload-archive", "set-model-environment"} // of service accounts and files, which are not there

// The other examples of requests are accepted as they are.
func TestExamplesOfRequestsAreAccepted(t *testing.T) {
	bodies(describe(), func(op *huma.Operation, part string, body *huma.MediaType) {
		if part != "request" || slices.Contains(notSent, op.OperationID) || strings.HasPrefix(op.OperationID, "webhook-") {
			return
		}
		w := newWorld(t)
		w.create(w.admin, "/departments", `{"name":"Speech"}`)
		if op.OperationID != "create-webhook" {
			w.create(w.admin, "/webhooks", `{"name":"chat","url":"https://chat.example.org","enabled":true}`)
		}
		w.create(w.member, "/requests", `{"reason":"more","role":{"project_id":1,"name":"guest","permission":"member","limit":`+slice+`}}`)
		raw, err := json.Marshal(body.Example)
		if err != nil {
			t.Fatal(err)
		}
		token := map[bool]string{true: w.member, false: w.admin}[slices.Contains([]string{"preview-launch", "launch-workspace", "preview-reservation", "create-reservation"}, op.OperationID)]
		path := strings.NewReplacer("{id}", "1", "{role}", "1", "{member}", "2").Replace(strings.ReplaceAll(op.Path, "/users/{id}", "/users/3"))
		if a := w.send(token, op.Method, path, string(raw)); a.status >= http.StatusBadRequest {
			t.Errorf("%s: %s answers %d %s", op.OperationID, raw, a.status, a.raw)
		}
	})
}

// Every type of notification has a webhook in the document, and messages that were
// written follow its schema.
func TestWebhooksOfTheDocument(t *testing.T) {
	doc := describe()
	kinds := append(slices.Clone(models.NotificationKinds), models.NotificationTest)
	if got := slices.Sorted(maps.Keys(doc.Webhooks)); !slices.Equal(got, slices.Sorted(slices.Values(kinds))) {
		t.Errorf("webhooks: %v, kinds: %v", got, kinds)
	}
	w := newWorld(t)
	hook := w.create(w.admin, "/webhooks", `{"name":"chat","url":"https://chat.example.org","enabled":true}`)
	w.want(204, w.admin, "POST", path("webhooks", hook, "test"), "")
	w.create(w.member, "/requests", `{"reason":"more","quota":{"project_id":1,"quota":{"gpu_cores":300}}}`)
	w.want(200, w.admin, "POST", "/requests/1/decision", `{"decision":"refuse","reason":"not now"}`)
	deliveries, err := w.store.Read(t.Context()).Deliveries(store.DeliveryFilter{WebhookID: hook}, store.Page{})
	if err != nil || len(deliveries) != 3 {
		t.Fatalf("%d deliveries, %v", len(deliveries), err)
	}
	for _, d := range deliveries {
		schema := doc.Webhooks[d.Kind].Post.RequestBody.Content["application/json"].Schema
		for _, problem := range problemsOf(t, doc, schema, []byte(d.Body)) {
			t.Errorf("%s: %v in %s", d.Kind, problem, d.Body)
		}
		if other := doc.Webhooks[models.NotificationProviderLost].Post.RequestBody.Content["application/json"].Schema; len(problemsOf(t, doc, other, []byte(d.Body))) == 0 {
			t.Errorf("%s follows the schema of another type: %s", d.Kind, d.Body)
		}
	}
}
