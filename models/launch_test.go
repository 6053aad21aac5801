package models_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/models"
)

func TestCheckLaunchParameters(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	many := map[string]string{}
	for len(many) < 101 {
		many[strings.Repeat("A", len(many)+1)] = ""
	}
	for _, c := range []struct {
		raw, refused string // the field, or nothing
	}{
		{`{}`, ""},
		{`{"gpus":2,"cores":100,"gpu_memory_mib":1,"gpu_model":"H100","cpu_milli":1,"memory_mib":1,"shm_mib":0,"path":"/lab?x=1","env":{"A_1":"b=c"}}`, ""},
		{`{"gpus":-1}`, "launch.gpus"}, {`{"gpus":1025}`, "launch.gpus"}, {`{"cores":101}`, "launch.cores"},
		{`{"memory_mib":1000000000001}`, "launch.memory_mib"}, {`{"cpu_milli":-9223372036854775808}`, "launch.cpu_milli"},
		{`{"cpu_milli":9223372036854775808}`, "launch"}, {`{"cpu_milli":1.5}`, "launch"},
		{`{"gpu_model":"` + long + `"}`, "launch.gpu_model"}, {`{"gpu_model":"a\u0000b"}`, "launch.gpu_model"}, {`{"gpu_model":"a\u200bb"}`, "launch.gpu_model"},
		{`{"path":"lab"}`, "launch.path"}, {`{"path":"//evil.example"}`, "launch.path"}, {`{"path":"/\\evil"}`, "launch.path"},
		{`{"path":"/a\r\nSet-Cookie: x"}`, "launch.path"}, {`{"path":"/a\u0000b"}`, "launch.path"}, {`{"path":"/a\tb"}`, "launch.path"}, {`{"path":"/` + long + `"}`, "launch.path"},
		{`{"env":{"1A":""}}`, "launch.env"}, {`{"env":{"A B":""}}`, "launch.env"}, {`{"env":{"":""}}`, "launch.env"}, {`{"env":{"A":"x\ny"}}`, "launch.env"},
		{`{"env":{"A":"x\u0000"}}`, "launch.env"}, {`{"env":{"A":"` + long + `"}}`, "launch.env"}, {`{"env":{"` + long + `":""}}`, "launch.env"},
		{`{"env":{"LD_PRELOAD":"x"}}`, "launch.env"}, {`{"env":{"CUDA_VISIBLE_DEVICES":"0"}}`, "launch.env"}, {`{"env":{"PATH":"/"}}`, "launch.env"}, {`{"env":{"WEIR_TOKEN":"x"}}`, "launch.env"},
		{`[]`, "launch"}, {``, "launch"}, {`{} {}`, "launch"}, {`{}x`, "launch"},
	} {
		_, err := checked([]byte(c.raw))
		if got := fieldOf(err); got != c.refused {
			t.Errorf("%.60s is refused for %q, want %q: %v", c.raw, got, c.refused, err)
		}
	}
	var p models.Problems
	models.LaunchParameters{Env: many}.Check("", &p)
	if len(p) != 1 || p[0].Name != "env" {
		t.Errorf("101 variables: %v", p)
	}
}

// checked reads launch parameters as they come over REST.
func checked(raw []byte) (l models.LaunchParameters, err error) {
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, models.Invalid("launch", "%s", err.Error())
	}
	var p models.Problems
	l.Check("launch", &p)
	return l, p.Err()
}

// fieldOf is the first field that an error refuses.
func fieldOf(err error) string {
	e, ok := err.(*models.Error)
	if !ok || len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Name
}

func FuzzCheckLaunchParameters(f *testing.F) {
	for _, raw := range []string{`{}`, `{"gpus":2,"cores":50,"path":"/lab","env":{"A":"b"}}`, `{"cores":-1}`, `{"gpus":1}{`, `null`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := checked(raw)
		if err != nil && models.KindOf(err) != models.KindInvalid {
			t.Errorf("%q: %v", raw, err)
		}
		if l.Cores != nil && err == nil && (*l.Cores < 0 || *l.Cores > 100) || l.GPUs != nil && err == nil && (*l.GPUs < 0 || *l.GPUs > 1024) {
			t.Errorf("%q was accepted", raw)
		}
	})
}

func TestParseEnv(t *testing.T) {
	var p models.Problems
	got := models.ParseEnv("env", "A=1\r\n\n  B = x=y \nC=\n", &p)
	if want := map[string]string{"A": "1", "B": " x=y", "C": ""}; !maps.Equal(got, want) || len(p) > 0 {
		t.Errorf("got %q, %v", got, p)
	}
	if got := models.ParseEnv("env", " \n\n", &p); got != nil || len(p) > 0 {
		t.Errorf("nothing is %q, %v", got, p)
	}
	if got := models.ParseEnv("env", "A=1\nno equals", &p); got != nil || len(p) != 1 || p[0].Name != "env" {
		t.Errorf("got %q, %v", got, p)
	}
}

func FuzzParseEnv(f *testing.F) {
	for _, text := range []string{"A=1", "A=1\r\nB=2", "=", "A", "\n\n", "A==\v\nA=2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p models.Problems
		env := models.ParseEnv("env", text, &p)
		if len(p) > 0 {
			return
		}
		again := models.ParseEnv("env", models.FormatEnv(env), &p)
		if len(p) > 0 || !maps.Equal(env, again) {
			t.Errorf("%q is %q, which is written and read as %q", text, env, again)
		}
	})
}

func TestChecksOfText(t *testing.T) {
	for _, c := range []struct {
		check func(string, string, *models.Problems) string
		good  map[string]string
		bad   []string
	}{
		{models.CheckName, map[string]string{" a ": "a", "数据 组": "数据 组", strings.Repeat("é", 100): strings.Repeat("é", 100)},
			[]string{"", "  ", strings.Repeat("x", 101), strings.Repeat("x", 10_000), "a\x00b", "a\nb", "a\u200bb", "a\u202eb", "a\xffb"}},
		{models.CheckEmail, map[string]string{" A@Example.ORG ": "a@example.org", "a+b@x.de": "a+b@x.de"},
			[]string{"", "a", "a@", "@b", "A <a@b.de>", "a@b.de, c@d.de", "a@b\x00.de", strings.Repeat("a", 250) + "@b.de"}},
	} {
		for in, want := range c.good {
			var p models.Problems
			if got := c.check("f", in, &p); got != want || len(p) > 0 {
				t.Errorf("%q became %q, %v", in, got, p)
			}
		}
		for _, in := range c.bad {
			var p models.Problems
			if c.check("f", in, &p); len(p) != 1 || p[0].Name != "f" {
				t.Errorf("%.40q: %v", in, p)
			}
		}
	}
	var p models.Problems
	if got := models.CheckText("f", " a\r\nb\n", 3, &p); got != "a\nb" || len(p) > 0 {
		t.Errorf("%q, %v", got, p)
	}
	for _, in := range []string{"abcd", "a\tb", "\xff"} {
		models.CheckText("f", in, 3, &p)
	}
	if len(p) != 3 {
		t.Errorf("refused: %v", p)
	}
}

func TestErrors(t *testing.T) {
	errSecret := errors.New("secret")
	if err := (models.Problems{}).Err(); err != nil {
		t.Errorf("no problem is %v", err)
	}
	for _, c := range []struct {
		err  error
		kind models.Kind
		says []string
	}{
		{models.Invalid("name", "must not be %s", "empty"), models.KindInvalid, []string{"name: must not be empty"}},
		{models.NotFound("project"), models.KindNotFound, []string{"The project was not found."}},
		{models.NoCapacity("cores", "%d left", 3), models.KindNoCapacity, []string{"3 left", "cores"}},
		{models.Unavailable(errSecret, "The database is down."), models.KindUnavailable, []string{"down"}},
		{errSecret, models.KindInternal, nil},
	} {
		if got := models.KindOf(c.err); got != c.kind {
			t.Errorf("%v is %s, want %s", c.err, got, c.kind)
		}
		if slices.ContainsFunc(c.says, func(s string) bool { return !strings.Contains(c.err.Error(), s) }) {
			t.Errorf("%v does not say %q", c.err, c.says)
		}
	}
	if strings.Contains(models.Unavailable(errSecret, "Down.").Message.String(), "secret") {
		t.Error("the cause is in the message")
	}
}
