package handlers

import (
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
)

// ofTokens has kept a text encoder with 256 tokens and no tokenizer.
type ofTokens struct{ workspaces.Served }

func (ofTokens) Generation(models.Deployment) (serving.Generation, error) {
	return serving.Generation{Embedding: &serving.Embedding{Vocabulary: 100, Pooling: "mean"}}, nil
}

// Texts with wrong forms are refused with what is right; right ones only because the parts of the
// deployment are not loaded.
func TestEmbeddings(t *testing.T) {
	w := newWorld(t)
	w.app.Workspaces.Served = ofTokens{}
	at := "/deployments/" + id(w.addDeployment(w.project, "ann@example.org", models.TaskTextEmbedding))
	hasTexts(t, w.want(409, w.member, "POST", at+"/v1/completions", `{"prompt":"a"}`).raw, "/v1/embeddings")
	images := "/deployments/" + id(w.addDeployment(w.project, "ann@example.org", models.TaskImageClassification))
	hasTexts(t, w.want(409, w.member, "POST", images+"/v1/embeddings", `{"input":[1]}`).raw, "/v2/models/{model}/infer")
	for input, reason := range map[string]string{
		`[]`: "from 1 to 2048 texts, and has 0", `"a"`: "no tokenizer.json", `[[1],"a"]`: "no tokenizer.json", `1`: "exactly one schema", `[1,2.5]`: "exactly one schema",
		`[100]`: "from 0 to 99", `[[1],[-1]]`: "exactly one schema", `[[1],[100]]`: "from 0 to 99",
		`[[1],[]]`: "exactly one schema", `[1,"a"]`: "from 0 to 99", `[1,2,3,4,5,6,7,8,9]`: "from 1 to 8 tokens in each text; text 1 has 9",
		`[1],"dimensions":3`: "must be absent or 2", `[1],"encoding_format":"hex"`: "encoding_format", `[1],"truncate":true`: "truncate",
		`[` + strings.Repeat("[1],", 2048) + `[1]]`: "from 1 to 2048 texts, and has 2049", `[[[1]]]`: "exactly one schema", `{}`: "exactly one schema",
	} {
		if a := w.want(422, w.member, "POST", at+"/v1/embeddings", `{"input":`+input+`}`); !strings.Contains(a.raw, reason) {
			t.Errorf("%.40s: %s", input, a.raw)
		}
	}
	if a := w.want(413, w.member, "POST", at+"/v1/embeddings", `{"input":"a"}`+strings.Repeat(" ", 4_000_000)); !strings.Contains(a.raw, "4 MB") {
		t.Error(a.raw)
	}
	for _, input := range []string{`[` + strings.Repeat("1,2,3,", 300_000) + `1]`, `[[1],[` + strings.Repeat("99,", 700_000) + `1]]`} {
		w.want(422, w.member, "POST", at+"/v1/embeddings", `{"input":`+input+`}`)
	}
	for _, input := range []string{`[1,2]`, `[[1],[2,3]]`, `[1],"dimensions":2,"encoding_format":"base64"`} {
		if a := w.want(503, w.member, "POST", at+"/v1/embeddings", `{"input":`+input+`}`); !strings.Contains(a.raw, "Part 1 is waiting") {
			t.Error(a.raw)
		}
	}
}

// Values are written as programs read them that ask for base64: 1, -2 and 0.5.
func TestBase64(t *testing.T) {
	if got := base64Of([]float32{1, -2, 0.5}); got != "AACAPwAAAMAAAAA/" {
		t.Error(got)
	}
}
