package handlers

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// operation is one method on one path of the document.
type operation struct {
	method, path string
	spec         map[string]any
}

func (o operation) String() string { return o.method + " " + o.path }

func operationsOfDocument(t testing.TB) (list []operation) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]map[string]any
	}
	if err := json.Unmarshal(must(OpenAPI())(t), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, spec := range methods {
			list = append(list, operation{strings.ToUpper(method), path, spec})
		}
	}
	return list
}

func TestAPIDocument(t *testing.T) {
	raw := must(OpenAPI())(t)
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc["openapi"] != "3.1.0" || doc["info"].(map[string]any)["version"] != "v1" {
		t.Errorf("openapi %v, info %v", doc["openapi"], doc["info"])
	}
	if !bytes.Equal(raw, must(OpenAPI())(t)) {
		t.Error("two documents differ")
	}
	ids := map[string]bool{}
	for _, op := range operationsOfDocument(t) {
		name, _ := op.spec["operationId"].(string)
		if name == "" || ids[name] || op.spec["summary"] == "" || len(op.spec["tags"].([]any)) != 1 {
			t.Errorf("%s: id %q, summary %v, tags %v", op, name, op.spec["summary"], op.spec["tags"])
		}
		ids[name] = true
		responses := op.spec["responses"].(map[string]any)
		for _, status := range []string{"401", "403", "500"} {
			if responses[status] == nil {
				t.Errorf("%s does not say when it answers %s", op, status)
			}
		}
		if body, _ := op.spec["requestBody"].(map[string]any); body != nil && body["content"].(map[string]any)["application/json"] != nil && (responses["400"] == nil || responses["422"] == nil || responses["415"] == nil) {
			t.Errorf("%s does not say how it refuses a body", op)
		}
	}
}

// No answer holds what must not leave the server.
func TestAPIDocumentHasNoSecrets(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(must(OpenAPI())(t), &doc); err != nil {
		t.Fatal(err)
	}
	inputs := []string{"NewUser", "PasswordChange", "PasswordInput", "LinkedPassword", "Acceptance", "Proof"}
	for name, schema := range doc.Components.Schemas {
		for field := range schema.Properties {
			secret := slices.ContainsFunc([]string{"password", "secret", "hash", "runtime", "endpoint", "epoch", "session"}, func(s string) bool {
				return strings.Contains(strings.ToLower(field), s)
			})
			if secret && !slices.Contains(inputs, name) && (!slices.Contains([]string{"NewToken", "NewWebhook", "NewSecondFactor"}, name) || field != "secret") {
				t.Errorf("%s.%s", name, field)
			}
			if strings.ToLower(field) != field {
				t.Errorf("%s.%s is not snake_case", name, field)
			}
		}
	}
}

func TestAPIDocumentIsServed(t *testing.T) {
	w := newWorld(t)
	a := w.get("", "/openapi.json")
	if a.body["openapi"] != "3.1.0" || a.raw != string(must(OpenAPI())(t)) {
		t.Error("another document is served")
	}
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/api/docs", nil))
	for _, text := range []string{"/api/v1/projects/{id}", "quota.gpu_cores", "launch-workspace", "change-reservation", apiDocument} {
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), text) {
			t.Errorf("the page of the API has no %s (%d)", text, rec.Code)
		}
	}
}

// twins tells for each page which operation does the same. A page that only
// shows a form has the twin of what the form shows. "" stands beside what has
// no meaning for a program, and why.
var twins = map[string]string{
	"GET /":                                     "GET /me",
	"GET /projects":                             "GET /projects",
	"POST /projects":                            "POST /projects",
	"GET /projects/new":                         "POST /projects",
	"GET /projects/start":                       "POST /projects/start/preview",
	"POST /projects/start":                      "POST /projects/start",
	"GET /projects/:id":                         "GET /projects/{id}",
	"POST /projects/:id":                        "PUT /projects/{id}",
	"GET /projects/:id/edit":                    "GET /projects/{id}",
	"POST /projects/:id/roles":                  "POST /projects/{id}/roles",
	"GET /projects/:id/roles/new":               "GET /projects/{id}/roles",
	"POST /projects/:id/roles/:role":            "PUT /projects/{id}/roles/{role}",
	"GET /projects/:id/roles/:role/edit":        "GET /projects/{id}/roles/{role}",
	"GET /projects/:id/roles/:role/delete":      "GET /projects/{id}/roles/{role}",
	"POST /projects/:id/roles/:role/delete":     "DELETE /projects/{id}/roles/{role}",
	"POST /projects/:id/members":                "POST /projects/{id}/members",
	"GET /projects/:id/members/new":             "GET /projects/{id}/members",
	"POST /projects/:id/members/:member":        "PUT /projects/{id}/members/{member}",
	"GET /projects/:id/members/:member/edit":    "GET /projects/{id}/members/{member}",
	"GET /projects/:id/members/:member/delete":  "GET /projects/{id}/members/{member}",
	"POST /projects/:id/members/:member/delete": "DELETE /projects/{id}/members/{member}",
	"GET /launch":                               "POST /launch/preview",
	"GET /workspaces":                           "GET /workspaces",
	"POST /workspaces":                          "POST /workspaces",
	"GET /workspaces/:id":                       "GET /workspaces/{id}",
	"GET /workspaces/:id/open":                  "POST /workspaces/{id}/open",
	"GET /workspaces/:id/log":                   "GET /workspaces/{id}/log",
	"GET /workspaces/stop":                      "POST /workspaces/stop",
	"POST /workspaces/stop":                     "POST /workspaces/stop",
	"GET /workspaces/:id/rename":                "GET /workspaces/{id}",
	"POST /workspaces/:id/rename":               "PUT /workspaces/{id}",
	"GET /workspaces/:id/restart":               "GET /workspaces/{id}",
	"POST /workspaces/:id/restart":              "POST /workspaces/{id}/restart",
	"POST /workspaces/:id/keep":                 "POST /workspaces/{id}/keep",
	"GET /reservations":                         "GET /reservations",
	"POST /reservations":                        "POST /reservations",
	"GET /reservations/calendar":                "GET /reservations/calendar",
	"GET /reservations/new":                     "POST /reservations/preview",
	"GET /reservations/:id":                     "GET /reservations/{id}",
	"GET /reservations/:id/change":              "POST /reservations/{id}/preview",
	"POST /reservations/:id/change":             "PATCH /reservations/{id}",
	"GET /reservations/:id/cancel":              "GET /reservations/{id}",
	"POST /reservations/:id/cancel":             "POST /reservations/{id}/cancel",
	"GET /runs":                                 "GET /runs",
	"GET /deployments/new":                      "POST /deployments",
	"POST /deployments":                         "POST /deployments",
	"GET /deployments":                          "GET /deployments",
	"GET /deployments/:id":                      "GET /deployments/{id}",
	"GET /deployments/:id/stop":                 "GET /deployments/{id}",
	"POST /deployments/:id/stop":                "POST /deployments/{id}/stop",
	"POST /deployments/:id/update":              "POST /deployments/{id}/update",
	"GET /runs/:id":                             "GET /runs/{id}",
	"GET /runs/new":                             "POST /runs/preview",
	"POST /runs":                                "POST /runs",
	"POST /runs/:id/renew":                      "POST /runs/{id}/renew",
	"GET /runs/:id/stop":                        "GET /runs/{id}",
	"POST /runs/:id/stop":                       "POST /runs/{id}/stop",
	"GET /runs/:id/delete":                      "GET /runs/{id}",
	"POST /runs/:id/delete":                     "DELETE /runs/{id}",
	"GET /pool":                                 "GET /pool",
	"GET /pool/planning":                        "POST /pool/planning",
	"GET /barriers":                             "POST /barriers",
	"POST /barriers":                            "POST /barriers",
	"GET /graphs":                               "POST /graphs/plan",
	"POST /graphs":                              "POST /graphs/plan",
	"POST /pool/providers":                      "POST /pool/authorizations",
	"GET /pool/providers/new":                   "POST /pool/authorizations",
	"GET /pool/providers/:id":                   "GET /pool/providers/{id}",
	"POST /pool/providers/:id":                  "PUT /pool/providers/{id}",
	"POST /pool/providers/:id/drain":            "POST /pool/providers/{id}/drain",
	"POST /pool/providers/:id/resume":           "POST /pool/providers/{id}/resume",
	"POST /pool/providers/:id/recall":           "POST /pool/providers/{id}/recall",
	"POST /pool/providers/:id/accept":           "POST /pool/providers/{id}/accept",
	"GET /pool/providers/:id/revoke":            "GET /pool/providers/{id}",
	"POST /pool/providers/:id/revoke":           "POST /pool/providers/{id}/revoke",
	"GET /pool/providers/:id/remove":            "GET /pool/providers/{id}",
	"POST /pool/providers/:id/remove":           "DELETE /pool/providers/{id}",
	"GET /pool/devices/:id":                     "GET /pool/devices/{id}",
	"POST /pool/devices/:id":                    "PUT /pool/devices/{id}",
	"GET /environments":                         "GET /environments",
	"POST /environments":                        "POST /environments",
	"GET /environments/new":                     "POST /environments",
	"GET /environments/:id/edit":                "GET /environments/{id}",
	"POST /environments/:id":                    "PUT /environments/{id}",
	"GET /environments/:id/delete":              "GET /environments/{id}",
	"POST /environments/:id/delete":             "DELETE /environments/{id}",
	"GET /access":                               "GET /access",
	"GET /people":                               "GET /users",
	"GET /people/new":                           "POST /invitations",
	"GET /people/:id":                           "GET /users/{id}",
	"POST /people/:id":                          "PUT /users/{id}",
	"POST /people/:id/password-link":            "POST /users/{id}/password-link",
	"GET /invitations":                          "GET /invitations",
	"POST /invitations":                         "POST /invitations",
	"GET /invitations/:id/revoke":               "GET /invitations/{id}",
	"POST /invitations/:id/revoke":              "DELETE /invitations/{id}",
	"GET /projects/:id/invitations":             "GET /projects/{id}/invitations",
	"GET /projects/:id/invitations/new":         "POST /projects/{id}/invitations",
	"POST /projects/:id/invitations":            "POST /projects/{id}/invitations",
	"GET /invitation":                           "POST /invitations/accept",
	"POST /invitation":                          "POST /invitations/accept",
	"GET /password":                             "POST /password",
	"POST /password":                            "POST /password",
	"GET /password/forgot":                      "POST /password/forgot",
	"POST /password/forgot":                     "POST /password/forgot",

	"GET /people/:id/identities/:identity/delete":  "GET /users/{id}",
	"POST /people/:id/identities/:identity/delete": "DELETE /users/{id}/identities/{identity}",

	"GET /tokens":             "GET /tokens",
	"POST /tokens":            "POST /tokens",
	"GET /tokens/:id/delete":  "GET /tokens",
	"POST /tokens/:id/delete": "DELETE /tokens/{id}",
	"GET /account":            "GET /me",
	"POST /account/password":  "PUT /me/password",

	"GET /account/second-factor/setup":           "GET /me/second-factor",
	"POST /account/second-factor/setup":          "POST /me/second-factor",
	"GET /account/second-factor/confirm":         "POST /me/second-factor",
	"POST /account/second-factor/confirm":        "POST /me/second-factor/confirm",
	"GET /account/second-factor/recovery-codes":  "GET /me/second-factor",
	"POST /account/second-factor/recovery-codes": "POST /me/second-factor/recovery-codes",
	"GET /account/second-factor/disable":         "GET /me/second-factor",
	"POST /account/second-factor/disable":        "POST /me/second-factor/disable",
	"GET /sign-in-policy":                        "GET /sign-in-policy",
	"POST /sign-in-policy":                       "PUT /sign-in-policy",
	"POST /account":                              "PUT /me",
	"GET /account/sessions/:id/end":              "GET /me/sessions",
	"POST /account/sessions/:id/end":             "DELETE /me/sessions/{id}",
	"GET /account/sessions/end":                  "GET /me/sessions",
	"POST /account/sessions/end":                 "DELETE /me/sessions",
	"GET /account/passkeys/new":                  "GET /me/second-factor",
	"POST /account/passkeys/new":                 "POST /me/passkeys/ceremony",
	"POST /account/passkeys":                     "POST /me/passkeys",
	"GET /account/passkeys/:id/rename":           "GET /me/passkeys",
	"POST /account/passkeys/:id/rename":          "PUT /me/passkeys/{id}",
	"GET /account/passkeys/:id/delete":           "GET /me/passkeys",
	"POST /account/passkeys/:id/delete":          "DELETE /me/passkeys/{id}",
	"GET /people/:id/second-factor/reset":        "GET /users/{id}",
	"POST /people/:id/second-factor/reset":       "DELETE /users/{id}/second-factor",

	"GET /audit":                     "GET /audit",
	"GET /search":                    "GET /search",
	"GET /notifications":             "GET /notifications",
	"GET /notifications/bell":        "GET /notifications/unread",
	"POST /notifications/read":       "POST /notifications/read",
	"GET /notifications/:id":         "POST /notifications/{id}/read",
	"POST /notifications/:id/read":   "POST /notifications/{id}/read",
	"POST /account/notifications":    "PUT /me/notification-preferences",
	"GET /webhooks":                  "GET /webhooks",
	"POST /webhooks":                 "POST /webhooks",
	"POST /webhooks/mail-test":       "POST /webhooks/mail-test",
	"GET /webhooks/new":              "POST /webhooks",
	"GET /webhooks/:id":              "GET /deliveries",
	"POST /webhooks/:id":             "PUT /webhooks/{id}",
	"GET /webhooks/:id/delete":       "GET /webhooks/{id}",
	"POST /webhooks/:id/delete":      "DELETE /webhooks/{id}",
	"GET /webhooks/:id/rotate":       "GET /webhooks/{id}",
	"POST /webhooks/:id/rotate":      "POST /webhooks/{id}/rotate",
	"POST /webhooks/:id/test":        "POST /webhooks/{id}/test",
	"POST /webhooks/:id/redeliver":   "POST /webhooks/{id}/redeliver",
	"POST /deliveries/:id/redeliver": "POST /deliveries/{id}/redeliver",

	"GET /requests":                    "GET /requests",
	"POST /requests":                   "POST /requests",
	"GET /requests/new":                "POST /requests",
	"GET /requests/:id":                "GET /requests/{id}",
	"POST /requests/:id":               "POST /requests/{id}/decision",
	"GET /requests/:id/withdraw":       "GET /requests/{id}",
	"POST /requests/:id/withdraw":      "POST /requests/{id}/withdraw",
	"POST /projects/:id/join-requests": "PUT /projects/{id}/join-requests",
	"GET /capacity":                    "GET /capacity",
	"POST /capacity":                   "PUT /capacity",

	"GET /curators":                "GET /curators",
	"POST /curators":               "POST /curators",
	"GET /curators/:id/delete":     "GET /curators",
	"POST /curators/:id/delete":    "DELETE /curators/{id}",
	"GET /departments":             "GET /departments",
	"POST /departments":            "POST /departments",
	"GET /departments/new":         "POST /departments",
	"GET /departments/:id":         "GET /departments/{id}",
	"POST /departments/:id":        "PUT /departments/{id}",
	"GET /departments/:id/delete":  "GET /departments/{id}",
	"POST /departments/:id/delete": "DELETE /departments/{id}",

	"GET /people/import":                              "POST /users/import",
	"POST /people/import":                             "POST /users/import",
	"GET /projects/:id/members/import":                "POST /projects/{id}/members/import",
	"POST /projects/:id/members/import":               "POST /projects/{id}/members/import",
	"GET /usage":                                      "GET /usage",
	"GET /accounting":                                 "GET /accounting",
	"GET /projects/:id/accounting":                    "GET /projects/{id}/accounting",
	"GET /prices":                                     "GET /prices",
	"GET /prices/new":                                 "POST /prices",
	"POST /prices":                                    "POST /prices",
	"GET /projects/:id/usage":                         "GET /projects/{id}/usage",
	"GET /projects/:id/former-members":                "GET /projects/{id}/former-members",
	"GET /projects/:id/members/:member/handover":      "GET /projects/{id}/members/{member}/handover",
	"POST /projects/:id/members/:member/handover":     "POST /projects/{id}/members/{member}/handover",
	"GET /projects/:id/members/:member/handover/end":  "GET /projects/{id}/members/{member}/handover",
	"POST /projects/:id/members/:member/handover/end": "DELETE /projects/{id}/members/{member}/handover",

	"GET /projects/:id/service-accounts/new":                  "POST /projects/{id}/service-accounts",
	"POST /projects/:id/service-accounts":                     "POST /projects/{id}/service-accounts",
	"GET /projects/:id/members/:member/tokens":                "GET /projects/{id}/members/{member}/tokens",
	"POST /projects/:id/members/:member/tokens":               "POST /projects/{id}/members/{member}/tokens",
	"GET /projects/:id/members/:member/tokens/:token/delete":  "GET /projects/{id}/members/{member}/tokens",
	"POST /projects/:id/members/:member/tokens/:token/delete": "DELETE /projects/{id}/members/{member}/tokens/{token}",

	"GET /projects/:id/files":                            "GET /projects/{id}/files",
	"GET /projects/:id/files/entry":                      "GET /projects/{id}/files/stat",
	"GET /projects/:id/files/model":                      "GET /projects/{id}/files/model",
	"GET /projects/:id/files/graph":                      "GET /projects/{id}/files/graph",
	"GET /projects/:id/files/preview":                    "GET /projects/{id}/files/content",
	"POST /projects/:id/files/upload":                    "PUT /projects/{id}/files/content",
	"POST /projects/:id/files/directories":               "POST /projects/{id}/files/directories",
	"GET /projects/:id/files/move":                       "GET /projects/{id}/files/stat",
	"POST /projects/:id/files/move":                      "POST /projects/{id}/files/moves",
	"POST /projects/:id/files/environment":               "PUT /projects/{id}/files/environment",
	"POST /projects/:id/files/rename":                    "POST /projects/{id}/files/moves",
	"POST /projects/:id/files/delete":                    "DELETE /projects/{id}/files",
	"GET /projects/:id/files/trash":                      "GET /projects/{id}/files/trash",
	"POST /projects/:id/files/trash/:item/restore":       "POST /projects/{id}/files/trash/{item}/restore",
	"GET /projects/:id/files/trash/:item/delete":         "GET /projects/{id}/files/trash",
	"POST /projects/:id/files/trash/:item/delete":        "DELETE /projects/{id}/files/trash/{item}",
	"POST /projects/:id/files/versions/:version/restore": "POST /projects/{id}/files/versions/{version}/restore",
	"GET /projects/:id/files/versions/:version/delete":   "GET /projects/{id}/files/versions",
	"POST /projects/:id/files/versions/:version/delete":  "DELETE /projects/{id}/files/versions/{version}",
	"GET /projects/:id/files/access":                     "GET /projects/{id}/files/access",
	"POST /projects/:id/files/access":                    "PUT /projects/{id}/files/rules",
	"GET /projects/:id/files/rules":                      "GET /projects/{id}/files/rules",
	"POST /projects/:id/files/rules/:rule/delete":        "DELETE /projects/{id}/files/rules/{rule}",

	"GET /projects/:id/split-presets":                 "GET /projects/{id}/split-presets",
	"POST /projects/:id/split-presets":                "POST /projects/{id}/split-presets",
	"GET /projects/:id/split-presets/:preset/delete":  "GET /projects/{id}/split-presets",
	"POST /projects/:id/split-presets/:preset/delete": "DELETE /projects/{id}/split-presets/{preset}",

	"GET /setup":   "", // the first administrator is made by a person with the link, or by the command line
	"POST /setup":  "",
	"GET /signin":  "", // programs have tokens
	"POST /signin": "",

	"GET /signin/passkey":                "",
	"GET /signin/passkey/ceremony":       "",
	"POST /signin/passkey":               "",
	"GET /signin/second-factor":          "",
	"POST /signin/second-factor":         "",
	"GET /signin/second-factor/setup":    "",
	"POST /signin/second-factor/setup":   "",
	"GET /signin/second-factor/confirm":  "",
	"POST /signin/second-factor/confirm": "",

	"POST /signout":  "",
	"POST /language": "", // of a browser
	"GET /events":    "", // a stream beside the API
	"GET /api/docs":  "", // the API's own page
	"GET /docs":      "", // beside /docs/README.md and the other files
	"GET /docs/*":    "",
}

func TestEveryPageHasItsTwin(t *testing.T) {
	w := newWorld(t)
	operations := map[string]bool{}
	for _, op := range operationsOfDocument(t) {
		operations[op.String()] = true
	}
	plain := []string{"/healthz", "/readyz", "/metrics", "/static/*", "/favicon.ico", "/api/v1/openapi.json", agentsAddressPath}
	served := 0
	for _, r := range w.app.echo.Routes() {
		switch {
		case r.Method == "echo_route_not_found", slices.Contains(plain, r.Path):
		case strings.HasPrefix(r.Path, apiPrefix+"/"):
			served++
		default:
			twin, known := twins[r.Method+" "+r.Path]
			if !known || (twin != "" && !operations[twin]) {
				t.Errorf("%s %s has no operation as its twin (%q)", r.Method, r.Path, twin)
			}
		}
	}
	if served != len(operations) {
		t.Errorf("%d operations are served, %d are described", served, len(operations))
	}
}

// Lists have one naming of their parameters: q, sort, order, cursor and limit, a span by
// from and until, and filters named as the property that they filter.
func TestParametersOfListsHaveOneNaming(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In string }
			Responses   map[string]struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Items struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal(must(OpenAPI())(t), &doc); err != nil {
		t.Fatal(err)
	}
	schema := func(ref string) string { return strings.TrimPrefix(ref, "#/components/schemas/") }
	named := []string{"q", "sort", "order", "cursor", "limit", "from", "until"}
	selections := []string{"list-environments version_constraints", "list-requests filter", "list-deliveries mail", "list-file-access path", "list-file-rules above",
		"list-workspaces idle_hours", "list-workspaces provider_id", "list-audit project_name"}
	for _, of := range []string{"get-accounting", "get-project-accounting"} { // what is summed, not the sums
		selections = append(selections, of+" group", of+" user_id", of+" model", of+" holder", of+" billing")
	}
	lists := 0
	for path, methods := range doc.Paths {
		op, ok := methods["get"]
		list := doc.Components.Schemas[schema(op.Responses["200"].Content["application/json"].Schema.Ref)]
		items, isList := list.Properties["items"]
		if !ok || !isList {
			continue
		}
		lists++
		var names []string
		for _, p := range op.Parameters {
			if p.In != "query" {
				continue
			}
			names = append(names, p.Name)
			_, isProperty := doc.Components.Schemas[schema(items.Items.Ref)].Properties[p.Name]
			if !isProperty && !slices.Contains(named, p.Name) && !slices.Contains(selections, op.OperationID+" "+p.Name) {
				t.Errorf("%s: %s is neither a common parameter nor a property of %s", path, p.Name, schema(items.Items.Ref))
			}
		}
		if slices.Contains(names, "cursor") != slices.Contains(names, "limit") || slices.Contains(names, "order") != slices.Contains(names, "sort") {
			t.Errorf("%s has only a part of cursor and limit, or of sort and order: %v", path, names)
		}
	}
	if lists < 20 {
		t.Errorf("only %d lists", lists)
	}
}
