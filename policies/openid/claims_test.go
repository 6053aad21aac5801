package openid

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestClaimsOfOtherTypesAreIgnored(t *testing.T) {
	for raw, want := range map[string][]string{`["a","b"]`: {"a", "b"}, `"a"`: {"a"}, `""`: nil, `null`: nil, ``: nil, `["a",1]`: nil, `{"a":true}`: nil, `7`: nil} {
		if got := (claims{"groups": json.RawMessage(raw)}).list("groups"); !slices.Equal(got, want) {
			t.Errorf("%s: %q", raw, got)
		}
	}
	for raw, want := range map[string]bool{`true`: true, `"true"`: true, `false`: false, `"false"`: false, `1`: false, `"yes"`: false, `null`: false, ``: false, `[true]`: false} {
		if got := (claims{"email_verified": json.RawMessage(raw)}).boolean("email_verified"); got != want {
			t.Errorf("%s: %t", raw, got)
		}
	}
}

func TestEmailAndVerificationHaveOneSource(t *testing.T) {
	parse := func(s string) (c claims) {
		if err := json.Unmarshal([]byte(s), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, m := range []struct {
		token, info string
		email       string
		verified    bool
	}{
		{`{}`, `{"email":"a@x","email_verified":true}`, "a@x", true},
		{`{"email":"a@x","email_verified":true}`, `{"email":"b@x","email_verified":false}`, "a@x", true},
		{`{"email":"a@x"}`, `{"email":"b@x","email_verified":true}`, "a@x", false},
		{`{"email":"a@x"}`, `{"email":"a@x","email_verified":true}`, "a@x", true},
		{`{"email_verified":true}`, `{"email":"b@x"}`, "b@x", false},
		{`{"email":"a@x","email_verified":false}`, `{"email":"a@x","email_verified":true}`, "a@x", false},
	} {
		c := parse(m.token)
		c.add(parse(m.info))
		if c.text("email") != m.email || c.boolean("email_verified") != m.verified {
			t.Errorf("%s and %s: %s, %t", m.token, m.info, c.text("email"), c.boolean("email_verified"))
		}
	}
}
