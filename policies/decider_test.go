package policies

import (
	"strings"
	"testing"

	"github.com/casbin/casbin/v2/model"
)

// A model in which rules can deny, or have other tokens, is refused: its denials would permit.
func TestDeciderRefusesOtherModels(t *testing.T) {
	for _, other := range []struct{ old, new string }{
		{"some(where (p.eft == allow))", "!some(where (p.eft == deny))"}, {"p = sub, dom, obj, act", "p = sub, dom, obj, act, eft"},
		{"r = sub, dom, obj, act", "r = sub, obj, dom, act"},
	} {
		text := strings.Replace(accessModel, other.old, other.new, 1)
		m, err := model.NewModelFromString(text)
		if err != nil || text == accessModel {
			t.Fatal(err)
		}
		if _, err := newDecider(m); err == nil {
			t.Errorf("with %s it is accepted", other.new)
		}
	}
}
