package reference

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Message is a type of webhook message and the type of its data; nil if it has none.
type Message struct {
	Kind string
	Data reflect.Type
}

// AddWebhooks describes the messages to webhooks, whose bodies are events.
func AddWebhooks(doc *huma.OpenAPI, tag string, event reflect.Type, messages []Message) {
	if doc.Components.Parameters == nil {
		doc.Components.Parameters = map[string]*huma.Param{}
	}
	headers := webhookHeaders(doc.Components)
	base := doc.Components.Schemas.Schema(event, true, "")
	doc.Webhooks = map[string]*huma.PathItem{}
	for _, m := range messages {
		kind := map[string]*huma.Schema{"type": {Type: huma.TypeString, Description: "Type of the event.", Enum: []any{m.Kind}}}
		required := []string{"type"}
		if m.Data != nil {
			required = append(required, "data")
			kind["data"] = doc.Components.Schemas.Schema(m.Data, true, "")
		}
		particular := &huma.Schema{Type: huma.TypeObject, Properties: kind, Required: required}
		particular.PrecomputeMessages()
		body := &huma.Schema{AllOf: []*huma.Schema{base, particular}}
		doc.Webhooks[m.Kind] = &huma.PathItem{Post: &huma.Operation{
			OperationID: "webhook-" + strings.NewReplacer(".", "-").Replace(m.Kind), Tags: []string{tag},
			Summary: "Receive " + m.Kind, Description: load().Webhooks[m.Kind],
			Parameters:  headers,
			RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{jsonBody: {Schema: body}}},
			Responses: map[string]*huma.Response{
				"2XX": {Description: "The message was received."},
				"4XX": {Description: "The message was rejected. It is sent again later, and later messages may come first."},
			},
			Security: []map[string][]string{},
		}}
	}
}

// webhookHeaders are the headers of every message.
func webhookHeaders(c *huma.Components) (refs []*huma.Param) {
	for _, h := range []struct{ name, description string }{
		{"Weir-Event", "Type of the event."},
		{"Weir-Delivery", "Idempotency key; the same in every attempt."},
		{"Weir-Signature", "t=TIME,v1=SIGNATURE: the Unix time, and the HMAC-SHA256 of TIME, a period and the body with the secret of the webhook, in hexadecimal. " +
			"After a rotation, there is a v1 for each valid secret."},
	} {
		key := strings.ReplaceAll(h.name, "-", "")
		c.Parameters[key] = &huma.Param{Name: h.name, In: "header", Required: true, Description: h.description,
			Schema: &huma.Schema{Type: huma.TypeString}}
		refs = append(refs, &huma.Param{Ref: "#/components/parameters/" + key})
	}
	return refs
}
