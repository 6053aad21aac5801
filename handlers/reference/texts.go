package reference

import (
	_ "embed"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed reference.yaml
var source []byte

// texts are the contents of reference.yaml.
type texts struct {
	Inherits   map[string]string // schema → schema whose entries apply too
	Schemas    map[string]string
	Properties map[string]string // by Schema.property or property
	Examples   map[string]any    // by Schema.property or property
	Requests   map[string]any    // examples of request bodies by operation ID
	Operations map[string]string // descriptions by operation ID
	Webhooks   map[string]string // descriptions by type of notification
}

var load = sync.OnceValue(func() (t texts) {
	if err := yaml.Unmarshal(source, &t); err != nil {
		panic("reference.yaml: " + err.Error())
	}
	return t
})

// find returns an entry by schema and property, or else by property. given reports
// whether there is one.
func find[T any](t texts, entries map[string]T, schema, property string) (entry T, given bool) {
	for ; schema != ""; schema = t.Inherits[schema] {
		if entry, given = entries[schema+"."+property]; given {
			return entry, true
		}
	}
	entry, given = entries[property]
	return entry, given
}
