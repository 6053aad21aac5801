package handlers

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is validated and what is decoded into a type are the same, also if a key is there
// twice or an integer is written with a fraction of zero.
func TestReadJSON(t *testing.T) {
	type body struct {
		N    int64              `json:"n"`
		F    float64            `json:"f"`
		Any  any                `json:"any"`
		Map  map[string]float64 `json:"map"`
		List []int64            `json:"list"`
		Raw  json.RawMessage    `json:"raw"`
	}
	for in, want := range map[string]string{
		`{"n":2.0,"f":0.7}`:                         `{"n":2,"f":0.7,"any":null,"map":null,"list":null,"raw":null}`,
		`{"n":-1e3,"f":1}`:                          `{"n":-1000,"f":1,"any":null,"map":null,"list":null,"raw":null}`,
		`{"n":7,"n":null,"f":9e-1}`:                 `{"n":0,"f":0.9,"any":null,"map":null,"list":null,"raw":null}`,
		`{"n":9223372036854775807,"any":[1.0,0.5]}`: `{"n":9223372036854775807,"f":0,"any":[1,0.5],"map":null,"list":null,"raw":null}`,
		`{"map":{"a":-0.0,"b":2.5},"list":[3.0,4]}`: `{"n":0,"f":0,"any":null,"map":{"a":0,"b":2.5},"list":[3,4],"raw":null}`,
		`{"raw":{"a":[1.0,"x"]}}`:                   `{"n":0,"f":0,"any":null,"map":null,"list":null,"raw":{"a":[1,"x"]}}`,
	} {
		var got body
		if err := readJSON([]byte(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if want != marshal(t, got) {
			t.Errorf("%s is read as %s", in, marshal(t, got))
		}
	}
	for _, in := range []string{`1e400`, `-1e400`, `99999999999999999999`, `9007199254740992.0`, `1e30`} {
		var got any
		if err := readJSON([]byte(in), &got); err != nil || got != any(json.Number(in)) {
			t.Errorf("%s is read as %#v, %v: no schema may accept it", in, got, err)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	var text strings.Builder
	if err := writeJSON(&text, v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}
