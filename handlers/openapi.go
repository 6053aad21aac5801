package handlers

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"weir/handlers/reference"
	"weir/models"
	"weir/pool/requests"
)

func init() {
	huma.NewError = newProblem
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
}

var apiDescription = models.Say("Manage projects, roles, members, environments, workspaces and the GPU pool of Weir. " +
	"Every portal action is available in this API with the same permissions. " +
	"Authenticate with `Authorization: Bearer` and a personal access token. " +
	"Errors are application/problem+json and list the invalid fields. " +
	"Every GET of JSON carries an ETag and returns 304 to If-None-Match; an update with an outdated If-Match is rejected with 412. " +
	"Lists are paginated: pass next_cursor as cursor until it is absent. " +
	"Amounts are integers; times are RFC 3339 in UTC. " +
	"GET /events?topic=… streams server-sent events: each `change` event names a topic with changed resources " +
	"(pool, environments, projects, departments, requests, deliveries, " +
	"project:ID, workspace:ID, run:ID, run-output:ID, user:ID, and telemetry:ID of a provider). " +
	"A `jitter` event before it gives the milliseconds over which its many readers spread their requests.")

// apiRoutes registers the REST API and its document.
func (a *App) apiRoutes(g *echo.Group) {
	group := g.Group(apiPrefix, a.revalidate, binaryTensors)
	api := humaecho.NewWithGroup(a.echo, group, apiConfig())
	api.UseMiddleware(func(hc huma.Context, next func(huma.Context)) { admitAPI(api, hc, next) })
	api.UseMiddleware(a.idempotent)
	rest{a}.operations(api)
	a.uploadsRoutes(group)
	group.GET("/openapi.json", a.openAPIDocument)
}

func (a *App) openAPIDocument(c echo.Context) error {
	doc, err := document()
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/openapi+json", doc)
}

// OpenAPI is the description of the REST API as indented JSON.
func OpenAPI() ([]byte, error) { return json.MarshalIndent(describe(), "", "  ") }

// document is the OpenAPI document of a running server.
var document = sync.OnceValues(OpenAPI)

// describe makes the document without a running App: operations are
// registered but never called.
func describe() *huma.OpenAPI {
	api := huma.NewAPI(apiConfig(), nowhere{})
	rest{}.operations(api)
	doc := api.OpenAPI()
	reference.AddWebhooks(doc, "Webhooks", reflect.TypeFor[models.Event](), webhookMessages())
	reference.Complete(doc)
	return doc
}

// webhookMessages are the types of messages that a webhook may get.
func webhookMessages() (list []reference.Message) {
	data := map[string]reflect.Type{
		"workspace": reflect.TypeFor[models.WorkspaceNotification](), "provider": reflect.TypeFor[models.ProviderNotification](),
		"run": reflect.TypeFor[models.RunNotification](), "reservation": reflect.TypeFor[models.ReservationNotification](),
		"quota": reflect.TypeFor[models.QuotaNotification](), "storage": reflect.TypeFor[models.StorageNotification](),
		"request":  reflect.TypeFor[models.QuotaRequest](),
		"handover": reflect.TypeFor[models.Handover](), "period": reflect.TypeFor[requests.EndData](),
		"deadline": reflect.TypeFor[requests.EndData](),
	}
	for _, kind := range append(slices.Clone(models.NotificationKinds), models.NotificationTest) {
		object, _, _ := strings.Cut(kind, ".")
		list = append(list, reference.Message{Kind: kind, Data: data[object]})
	}
	return list
}

// nowhere is a router for operations that are only described.
type nowhere struct{}

func (nowhere) Handle(*huma.Operation, func(huma.Context)) {}

func (nowhere) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

func apiConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Weir API", Version: "v1", Description: apiDescription.String(),
				Contact: &huma.Contact{Name: "The administrator of this server"}, License: &huma.License{Name: "Apache License 2.0",
					Identifier: "Apache-2.0"}},
			Servers: []*huma.Server{{URL: apiPrefix}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {Type: "http", Scheme: "bearer", Description: "personal access token"},
					"session": {Type: "apiKey", In: "cookie", Name: SessionCookie(false),
						Description: "session cookie of the portal, named " + SessionCookie(true) + " over TLS"},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"session": {}}},
			Tags:     documentTags(),
		},
		Formats:                      map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// apiTags are the chapters of the document.
var apiTags = []struct{ name, description models.Text }{
	{models.Say("Account"), models.Say("The authenticated user, their second factor and access tokens")},
	{models.Say("Users"), models.Say("User accounts and departments; requires platform administrator")},
	{models.Say("Projects"), models.Say("Projects, roles, members and usage")},
	{models.Say("Files"), models.Say("Shared directories of projects, and the rules about them")},
	{models.Say("Environments"), models.Say("Catalog of environments")},
	{models.Say("Workspaces"), models.Say("Workspaces and launch previews")},
	{models.Say("Runs"), models.Say("Commands that use a GPU share while they last")},
	{models.Say("Deployments"), models.Say("Models that are served on GPUs")},
	{models.Say("Reservations"), models.Say("GPU shares that are reserved for a time")},
	{models.Say("Pool"), models.Say("Providers, devices, GPU shares and the queue")},
	{models.Say("Notifications"), models.Say("Notifications and preferences")},
	{models.Say("Webhooks"), models.Say("Webhooks and deliveries")},
	{models.Say("Requests"), models.Say("Requests, approvals and pool capacity")},
	{models.Say("Audit"), models.Say("Audit log")},
	{models.Say("Access"), models.Say("Access checks")},
	{models.Say("Search"), models.Say("Search by name")},
}

func documentTags() (tags []*huma.Tag) {
	for _, t := range apiTags {
		tags = append(tags, &huma.Tag{Name: t.name.String(), Description: t.description.String()})
	}
	return tags
}

// operations registers every operation under its tag.
func (a rest) operations(api huma.API) {
	for _, noun := range []struct {
		tag        string
		operations []func(section)
	}{
		{"Account", []func(section){a.accountsOperations, a.secondFactorOperations, a.passkeyOperations}},
		{"Users", []func(section){a.peopleOperations, a.passwordsOperations, a.signInPolicyOperations, a.departmentsOperations}},
		{"Projects", []func(section){a.projectsOperations, a.startOperations, a.rolesOperations, a.membersOperations, a.serviceAccountsOperations,
			a.invitationsOperations, a.formerMembersOperations, a.previewsOperations,
			a.usageOperations, a.accountingOperations, a.availableOperations}},
		{"Files", []func(section){a.filesOperations, a.fileRulesOperations, a.curatorsOperations}},
		{"Environments", []func(section){a.environmentsOperations}},
		{"Workspaces", []func(section){a.launchOperations, a.workspacesOperations, a.barriersOperations, a.graphsOperations}},
		{"Runs", []func(section){a.runsOperations}},
		{"Deployments", []func(section){a.servingOperations, a.splitPresetsOperations}},
		{"Reservations", []func(section){a.reservationsOperations}},
		{"Pool", []func(section){a.poolOperations, a.providersOperations, a.devicesOperations, a.planningOperations}},
		{"Notifications", []func(section){a.notificationsOperations}},
		{"Webhooks", []func(section){a.webhooksOperations}},
		{"Requests", []func(section){a.requestsOperations, a.capacityOperations, a.pricesOperations}},
		{"Audit", []func(section){a.auditOperations}},
		{"Access", []func(section){a.accessOperations}},
		{"Search", []func(section){a.searchOperations}},
	} {
		for _, register := range noun.operations {
			register(section{api, noun.tag})
		}
	}
	allowUnlimited(api.OpenAPI().Components.Schemas.Map())
	describeTexts(api.OpenAPI().Components.Schemas.Map())
	describeContent(api.OpenAPI().Components.Schemas.Map()["ChatMessage"])
	documentHeaders(api.OpenAPI())
}

// unlimitedIn are the amounts in bodies that can be unlimited, by schema.
var unlimitedIn = map[string][]string{
	"Resources": {"cpu_milli", "memory_mib", "storage_mib"}, "ResourcesInput": {"cpu_milli", "memory_mib", "storage_mib"},
	"PreviewRow": {"before", "after", "quota", "remaining"}, "FilledAmount": {"amount"}, "ResourceCapacity": {"allocated"},
}

// allowUnlimited allows the word beside the integers of unlimitedIn.
func allowUnlimited(schemas map[string]*huma.Schema) {
	for name, amounts := range unlimitedIn {
		for _, amount := range amounts {
			integer := *schemas[name].Properties[amount]
			either := &huma.Schema{Description: integer.Description, OneOf: []*huma.Schema{&integer,
				{Type: huma.TypeString, Enum: []any{models.UnlimitedWord}}}}
			integer.Description = ""
			either.PrecomputeMessages()
			schemas[name].Properties[amount] = either
		}
	}
}

// describeTexts says that a text for a model can be a list of token numbers, and that an embedding is a list
// of values or, in base64, a text.
func describeTexts(schemas map[string]*huma.Schema) {
	number := &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}
	number.PrecomputeMessages()
	text, tokens := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeArray, Items: number}
	of := &huma.Schema{AnyOf: []*huma.Schema{number, text, {Type: huma.TypeArray, Items: number, MinItems: new(1)}}}
	of.PrecomputeMessages()
	oneOf(schemas["CompletionInput"], "prompt", text, tokens)
	oneOf(schemas["EmbeddingInput"], "input", text, &huma.Schema{Type: huma.TypeArray, Items: of})
	oneOf(schemas["Embedding"], "embedding", &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeNumber}}, text)
}

// oneOf says that a property has one of two forms.
func oneOf(s *huma.Schema, property string, forms ...*huma.Schema) {
	either := &huma.Schema{Description: s.Properties[property].Description, OneOf: forms}
	either.PrecomputeMessages()
	s.Properties[property] = either
}

// describeContent says that the content of a message is a text or a list of texts.
func describeContent(s *huma.Schema) {
	part := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{
		"type": {Type: huma.TypeString, Description: "Type of the part; only text is supported."},
		"text": {Type: huma.TypeString, Description: "Text of the part."}}}
	part.PrecomputeMessages()
	oneOf(s, "content", &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeArray, Items: part})
}

// admitAPI refuses unauthenticated requests, except to public operations.
func admitAPI(api huma.API, hc huma.Context, next func(huma.Context)) {
	r := humaecho.Unwrap(hc).Request()
	if !isPublic(hc.Operation()) && !actorOf(r.Context()).SignedIn() {
		for _, scheme := range feedChallenge["Www-Authenticate"] {
			if scheme == "Bearer" || r.URL.Path == feedPath {
				hc.AppendHeader("WWW-Authenticate", scheme)
			}
		}
		_ = huma.WriteErr(api, hc, http.StatusUnauthorized, "Sign in to continue.") // the writer reports its own failure
		return
	}
	next(huma.WithValue(huma.WithValue(hc, requestKey{}, r), connectionKey{}, http.NewResponseController(humaecho.Unwrap(hc).Response())))
}
