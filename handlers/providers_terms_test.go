package handlers

import (
	"errors"
	"testing"

	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/providers"
)

// The form of the terms does not offer the name of a cluster's node, which the service refuses to
// change, and keeps it.
func TestTermsOfNode(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	const at, why, input = "/pool/providers/1", "The name is that of the node in the cluster", `id="f-name"`
	root.shows(root.page(200, "GET", at), input, "!"+why)
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		p, err := q.Provider(1)
		p.Machine = providers.NodeDigest(p.Name)
		return errors.Join(err, q.UpdateProvider(&p))
	})
	root.shows(root.page(200, "GET", at), `<input type="hidden" name="name" value="here">`, why, "!"+input)
	root.page(303, "POST", at, "name", "here", "cores", "50", "grace_minutes", "5")
	w.want(422, w.admin, "PUT", at, `{"name":"there","terms":{}}`)
	if p := w.provider(w.admin, 1); p["name"] != "here" || p["terms"].(map[string]any)["cores"] != 50.0 {
		t.Errorf("the provider is %v", p)
	}
}
