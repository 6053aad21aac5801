package workspaces

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
)

// InferInput is a request of the Open Inference Protocol, version 2, as far as it is supported.
type InferInput struct {
	ID         string         `json:"id,omitempty" maxLength:"200" doc:"returned with the response"`
	Inputs     []InferTensor  `json:"inputs" minItems:"1" maxItems:"1" doc:"the images, as pixel_values"`
	Outputs    []InferOutput  `json:"outputs,omitempty" maxItems:"2" doc:"what to return: logits or label; default: both"`
	Parameters map[string]any `json:"parameters,omitempty" doc:"ignored"`
}

// InferTensor is a tensor of a request.
type InferTensor struct {
	Name       string         `json:"name" enum:"pixel_values"`
	Datatype   string         `json:"datatype" enum:"FP32" doc:"type of the values"`
	Shape      []int64        `json:"shape" minItems:"4" maxItems:"4" doc:"number of images, channels, height and width"`
	Data       any            `json:"data,omitempty" doc:"list of values in row-major order, also as lists in lists; absent if they follow in binary"`
	Parameters map[string]any `json:"parameters,omitempty" doc:"binary_data_size: the values follow the JSON in so many bytes"`

	Binary []byte `json:"-"` // values in float32, little-endian; nil: they are in Data
}

// InferOutput is an output that is requested.
type InferOutput struct {
	Name       string         `json:"name" enum:"logits,label"`
	Parameters map[string]any `json:"parameters,omitempty" doc:"ignored"`
}

// Tensors of a model that classifies.
const (
	InputPixels  = "pixel_values"
	OutputLogits = "logits"
	OutputLabel  = "label"
)

const (
	maxImages = 256       // of a request
	maxLogits = 1_000_000 // of all its images; a model has fewer classes
)

// Inference is what a model has computed of images.
type Inference struct {
	Deployment models.Deployment
	Labels     []string    // of the classes
	Logits     [][]float32 // of each image, for each class
}

// Label is the label of the class with the highest logit.
func (v Inference) Label(logits []float32) string {
	return v.Labels[slices.Index(logits, slices.Max(logits))]
}

// Images is what a deployment classifies.
func (s *Service) Images(ctx context.Context, actor policies.Actor, id int64) (d models.Deployment, image serving.Image, err error) {
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return d, image, err
	}
	r := openRequest{s: s}
	if r.Deployment, err = current(s.store.Read(ctx), v.Deployment); err != nil {
		return d, image, err
	}
	if r.Deployment.Task != models.TaskImageClassification {
		return d, image, otherTask(r.Deployment)
	}
	if err = r.readGeneration(); err == nil && r.generation.Image == nil {
		err = notNow(r.Deployment)
	}
	if err != nil {
		return d, image, err
	}
	return r.Deployment, *r.generation.Image, nil
}

// Infer classifies images. Rights and errors are those of [Service.Complete].
func (s *Service) Infer(ctx context.Context, actor policies.Actor, id int64, in InferInput) (v Inference, err error) {
	var images [][]byte
	r, err := s.openRequest(ctx, actor, id, models.TaskImageClassification, func(r *openRequest) (err error) {
		images, err = in.images(r.generation.Image)
		return err
	})
	if err != nil {
		return v, err
	}
	defer r.Close()
	v.Deployment, v.Labels = r.Deployment, r.generation.Image.Labels
	v.Logits, err = r.sequence.Classify(int(r.Deployment.Context), images)
	if err = cmp.Or(context.Cause(r.ctx), err); errors.Is(err, serving.ErrNotNumber) {
		err = models.Invalid("inputs", "have a result that is not a number: the values are too large")
	}
	err = partFailed(err)
	r.done(0, len(v.Logits), err)
	return v, err
}

// images are the values of each image, which the tensor then has as Binary: a request is checked again
// if its deployment is replaced.
func (in InferInput) images(of *serving.Image) (list [][]byte, err error) {
	if of == nil {
		return nil, models.Unavailable(nil, "The parts of this deployment are not written yet. Repeat the request later.")
	}
	var p models.Problems
	for _, o := range in.Outputs {
		if o.Name != OutputLogits && o.Name != OutputLabel {
			p.Add("outputs", "must be logits or label")
		}
	}
	if len(in.Inputs) != 1 || in.Inputs[0].Name != InputPixels || in.Inputs[0].Datatype != "FP32" {
		p.Add("inputs", "must be one tensor with the name pixel_values and the datatype FP32")
		return nil, p.Err()
	}
	t := &in.Inputs[0]
	if len(t.Shape) != 4 || t.Shape[0] < 1 || t.Shape[0] > maxImages || !slices.Equal(t.Shape[1:], []int64{of.Channels, of.Size, of.Size}) {
		p.Add("inputs", "must have the shape [n, %d, %d, %d], of 1 to %d images", of.Channels, of.Size, of.Size, int64(maxImages))
		return nil, p.Err()
	}
	if most := maxLogits / int64(len(of.Labels)); t.Shape[0] > most {
		p.Add("inputs", "must be at most %d images for %d classes", most, int64(len(of.Labels)))
		return nil, p.Err()
	}
	if t.Binary == nil && !appendValues(&t.Binary, t.Data) {
		p.Add("inputs", "must have a list of numbers as data")
	} else if n := t.Shape[0] * of.Values(); int64(len(t.Binary)) != 4*n {
		p.Add("inputs", "must have %d values, and have %d", n, int64(len(t.Binary)/4))
	} else if !finite(t.Binary) {
		p.Add("inputs", "must have values that are numbers of 32 bits")
	}
	t.Data = nil // it is much larger, and the request can wait for long
	return slices.Collect(slices.Chunk(t.Binary, int(4*of.Values()))), p.Err()
}

// appendValues adds the numbers of a list, or of lists in it; false: something is no number.
func appendValues(to *[]byte, data any) bool {
	list, ok := data.([]any)
	for _, x := range list {
		if number, is := x.(float64); is {
			*to = binary.LittleEndian.AppendUint32(*to, math.Float32bits(float32(number)))
		} else if !appendValues(to, x) {
			return false
		}
	}
	return ok
}

// finite reports whether all values are numbers.
func finite(data []byte) bool {
	for at := 0; at+4 <= len(data); at += 4 {
		if x := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))); math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
