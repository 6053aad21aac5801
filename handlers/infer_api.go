package handlers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/workspaces"
)

// The paths of requests by the Open Inference Protocol, version 2 (github.com/kserve/open-inference-protocol).
const (
	inferModelPath = "/deployments/{id}/v2/models/{model}"
	inferPath      = inferModelPath + "/infer"
)

// ModelByName names the model of a deployment.
type ModelByName struct {
	ByID
	Model string `path:"model" maxLength:"200" doc:"name of the deployment; ignored"`
}

// InferByName is a request to a deployment.
type InferByName struct {
	ModelByName
	Body workspaces.InferInput
}

// InferModel is a model as the protocol describes it.
type InferModel struct {
	Name     string            `json:"name" doc:"name of the deployment"`
	Platform string            `json:"platform" enum:"weir" doc:"always weir"`
	Inputs   []InferTensorForm `json:"inputs" doc:"tensors of a request"`
	Outputs  []InferTensorForm `json:"outputs" doc:"tensors of a response"`
	Labels   []string          `json:"labels" doc:"labels of the classes, in the order of the logits"`
}

// InferTensorForm describes a tensor.
type InferTensorForm struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype" enum:"FP32,BYTES" doc:"type of the values"`
	Shape    []int64 `json:"shape" doc:"sizes; -1: any"`
}

// InferResponse is what a model has computed, as the protocol returns it.
type InferResponse struct {
	ModelName string        `json:"model_name" doc:"name of the deployment"`
	ID        string        `json:"id,omitempty" doc:"identifier of the request"`
	Outputs   []InferResult `json:"outputs" doc:"what was computed"`
}

// InferResult is a tensor of a response.
type InferResult struct {
	InferTensorForm
	Data any `json:"data" doc:"list of values in row-major order: numbers of logits, texts of label"`
}

func (a rest) getInferModel(ctx context.Context, in *ModelByName) (*Response[InferModel], error) {
	d, image, err := a.Workspaces.Images(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &Response[InferModel]{InferModel{Name: d.Name, Platform: "weir", Labels: image.Labels,
		Inputs: []InferTensorForm{{workspaces.InputPixels, "FP32", []int64{-1, image.Channels, image.Size, image.Size}}},
		Outputs: []InferTensorForm{{workspaces.OutputLogits, "FP32", []int64{-1, int64(len(image.Labels))}},
			{workspaces.OutputLabel, "BYTES", []int64{-1}}}}}, nil
}

func (a rest) infer(ctx context.Context, in *InferByName) (*Response[InferResponse], error) {
	tail, _ := ctx.Value(binaryKey{}).([]byte)
	for i := range in.Body.Inputs {
		t := &in.Body.Inputs[i]
		size, stated := t.Parameters["binary_data_size"]
		if stated && (size != float64(len(tail)) || t.Data != nil) || !stated && len(tail) > 0 {
			return nil, models.Invalid("inputs", "must have no data, and %d bytes as binary_data_size, which follow the JSON", int64(len(tail)))
		}
		if stated {
			t.Binary = tail
		}
	}
	v, err := a.Workspaces.Infer(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	r := InferResponse{ModelName: v.Deployment.Name, ID: in.Body.ID}
	for _, name := range []string{workspaces.OutputLogits, workspaces.OutputLabel} {
		if len(in.Body.Outputs) == 0 || requested(in.Body.Outputs, name) {
			r.Outputs = append(r.Outputs, inferResultOf(v, name))
		}
	}
	return &Response[InferResponse]{r}, nil
}

func requested(list []workspaces.InferOutput, name string) bool {
	return slices.ContainsFunc(list, func(o workspaces.InferOutput) bool { return o.Name == name })
}

// inferResultOf is an output of an inference.
func inferResultOf(v workspaces.Inference, name string) InferResult {
	n := int64(len(v.Logits))
	if name == workspaces.OutputLabel {
		return InferResult{InferTensorForm{name, "BYTES", []int64{n}}, models.Map(v.Logits, v.Label)}
	}
	var all []float32
	for _, logits := range v.Logits {
		all = append(all, logits...)
	}
	return InferResult{InferTensorForm{name, "FP32", []int64{n, int64(len(v.Labels))}}, all}
}

// binaryHeader is how long the JSON of a request is, which binary values follow: an extension of the
// protocol by Triton, which its clients use by default.
const binaryHeader = "Inference-Header-Content-Length"

type binaryKey struct{}

func isInfer(c echo.Context) bool { return strings.HasSuffix(c.Path(), "/infer") }

func isBinary(c echo.Context) bool { return isInfer(c) && c.Request().Header.Get(binaryHeader) != "" }

// binaryTensors takes the values off that follow the JSON of a request.
func binaryTensors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if !isBinary(c) || !actorOf(r.Context()).SignedIn() {
			return next(c)
		}
		connection := http.NewResponseController(c.Response())
		_ = connection.SetReadDeadline(time.Now().Add(bodyReadTimeout)) // a test's recorder has no connection
		body, err := io.ReadAll(r.Body)
		if he := (*echo.HTTPError)(nil); errors.As(err, &he) {
			return he // it is too large
		}
		if err != nil {
			return newProblem(http.StatusInternalServerError, "", err)
		}
		n, err := strconv.Atoi(r.Header.Get(binaryHeader))
		if err != nil || n < 0 || n > len(body) {
			return models.Invalid("inputs", "must have the length of the JSON in the header %s", binaryHeader)
		}
		r = r.WithContext(context.WithValue(r.Context(), binaryKey{}, body[n:]))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body[:n])), int64(n)
		r.Header.Set("Content-Type", "application/json")
		c.SetRequest(r)
		return next(c)
	}
}
