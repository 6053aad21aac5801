package handlers

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
)

const inferBody = `{"inputs":[{"name":"pixel_values","datatype":"FP32","shape":[1,1,2,2],"data":[1,2,3,4]}]}`

// oneImage has kept what images of two by two pixels are.
type oneImage struct{ workspaces.Served }

func (oneImage) Generation(models.Deployment) (serving.Generation, error) {
	return serving.Generation{Image: &serving.Image{Channels: 1, Size: 2, Labels: []string{"cat", "dog"}}}, nil
}

// A deployment is live until it has ended, and ready when it answers requests, at once or after it was idle.
func TestInferHealth(t *testing.T) {
	w := newWorld(t)
	deployment := w.addDeployment(w.project, "ann@example.org", models.TaskTextGeneration)
	at := "/deployments/" + id(deployment) + "/v2"
	hasTexts(t, w.get(w.member, at).raw, `"name":"weir"`, `"binary_tensor_data"`)
	for _, c := range []struct {
		state       models.DeploymentState
		live, ready int
	}{{models.DeploymentServing, 200, 200}, {models.DeploymentIdle, 200, 200}, {models.DeploymentDeploying, 200, 503}, {models.DeploymentStopping, 200, 503},
		{models.DeploymentFailed, 503, 503}} {
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			d, err := q.LockDeployment(deployment)
			if err != nil || d.State == c.state {
				return err
			}
			from := d.State
			d.State = c.state
			return q.TransitionDeployment(&d, from, models.Say("test"))
		})
		for path, want := range map[string]int{"/health/live": c.live, "/health/ready": c.ready, "/models/any/ready": c.ready} {
			if a := w.want(want, w.member, "GET", at+path, ""); want == 503 && !strings.Contains(a.raw, c.state.Words().String()) {
				t.Errorf("%s, %s: %s", c.state, path, a.raw)
			}
		}
	}
}

// Images with wrong forms are refused with what is right, in JSON and in binary; right ones only
// because the parts of the deployment are not loaded.
func TestInfer(t *testing.T) {
	w := newWorld(t)
	w.app.Workspaces.Served = oneImage{}
	at := "/deployments/" + id(w.addDeployment(w.project, "ann@example.org", models.TaskImageClassification))
	hasTexts(t, w.get(w.member, at+"/v2/models/any").raw, `"labels":["cat","dog"]`, `"shape":[-1,1,2,2]`)
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		body := map[string]string{"/v1/completions": `{"prompt":"a"}`, "/v1/chat/completions": `{"messages":[{"role":"user","content":"a"}]}`}[path]
		hasTexts(t, w.want(409, w.member, "POST", at+path, body).raw, "/v2/models/{model}/infer")
	}
	infer := at + "/v2/models/tiny/infer"
	for change, reason := range map[string]string{
		`"shape":[1,1,2,2]|"shape":[1,1,2,3]`:        "[n, 1, 2, 2]",
		`"shape":[1,1,2,2]|"shape":[257,1,2,2]`:      "1 to 256 images",
		`"shape":[1,1,2,2]|"shape":[2,1,2,2]`:        "must have 8 values, and have 4",
		`[1,2,3,4]|[1,2,"3",4]`:                      "list of numbers",
		`[1,2,3,4]|1`:                                "list of numbers",
		`,"data":[1,2,3,4]|`:                         "list of numbers",
		`}]|,"parameters":{"binary_data_size":16}}]`: "0 bytes as binary_data_size",
		`[1,2,3,4]|[1,2,3,1e39]`:                     "numbers of 32 bits",
		`"pixel_values"|"images"`:                    "pixel_values",
		`"FP32"|"FP16"`:                              "FP32",
		`"inputs"|"outputs":[{"name":"x"}],"inputs"`: "logits",
	} {
		from, to, _ := strings.Cut(change, "|")
		if a := w.want(422, w.member, "POST", infer, strings.Replace(inferBody, from, to, 1)); !strings.Contains(a.raw, reason) {
			t.Errorf("%s: %s", change, a.raw)
		}
	}
	for _, body := range []string{inferBody, strings.Replace(inferBody, "[1,2,3,4]", "[[[[1,2],[3,4]]]]", 1)} {
		if a := w.want(503, w.member, "POST", infer, body); !strings.Contains(a.raw, "Part 1 is waiting") {
			t.Error(a.raw)
		}
	}
	if a := w.want(413, w.member, "POST", infer, inferBody+strings.Repeat(" ", 4_000_000)); !strings.Contains(a.raw, "4 MB") {
		t.Error(a.raw)
	}
	binaryInfer(t, w, infer)
}

// binaryInfer sends values after the JSON.
func binaryInfer(t *testing.T, w *world, infer string) {
	t.Helper()
	head := strings.Replace(inferBody, `"data":[1,2,3,4]`, `"parameters":{"binary_data_size":16}`, 1)
	tail := ""
	for _, x := range []float32{1, 2, 3, 4} {
		tail += string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
	}
	for _, c := range []struct {
		status         int
		length, tail   string
		reason, client string
	}{
		{503, strconv.Itoa(len(head)), tail, "Part 1 is waiting", w.member}, {422, strconv.Itoa(len(head)), tail[:12], "12 bytes", w.member},
		{422, "100000", tail, binaryHeader, w.member}, {422, "x", tail, binaryHeader, w.member}, {422, "-1", tail, binaryHeader, w.member},
		{400, "0", tail, "", w.member}, {422, strconv.Itoa(len(head)), "\x00\x00\xc0\x7f" + tail[4:], "numbers of 32 bits", w.member},
		{413, strconv.Itoa(len(head)), strings.Repeat(tail, 1_000_000), "16 MB", w.member}, {401, strconv.Itoa(len(head)), tail, "", ""},
	} {
		a := w.send(c.client, "POST", infer, head+c.tail, binaryHeader, c.length, "Content-Type", "application/octet-stream")
		if a.status != c.status || !strings.Contains(a.raw, c.reason) {
			t.Errorf("%s and %d bytes: %d %s", c.length, len(c.tail), a.status, a.raw)
		}
	}
}
