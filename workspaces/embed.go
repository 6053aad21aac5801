package workspaces

import (
	"cmp"
	"context"
	"errors"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
)

// EmbeddingInput is a request of OpenAI's embeddings.
type EmbeddingInput struct {
	Model          string `json:"model,omitempty" maxLength:"200" doc:"name of the deployment; ignored"`
	Input          any    `json:"input" doc:"text or list of token numbers, or a list of up to 2,048 of them"`
	EncodingFormat string `json:"encoding_format,omitempty" enum:"float,base64" doc:"base64: values in float32, little-endian; default float"`
	Dimensions     int64  `json:"dimensions,omitempty" minimum:"0" maximum:"1000000" doc:"number of values, which is that of the model"`
	User           string `json:"user,omitempty" maxLength:"200" doc:"ignored"`
}

const (
	maxTexts  = 2048    // of a request
	maxValues = 1 << 21 // of all its embeddings
)

// Embeddings are vectors for the texts of a request, in their order.
type Embeddings struct {
	Deployment models.Deployment
	Vectors    [][]float32
	Tokens     int // of all texts
}

// Embed returns the embeddings of texts. Rights and errors are those of [Service.Complete].
func (s *Service) Embed(ctx context.Context, actor policies.Actor, id int64, in EmbeddingInput) (v Embeddings, err error) {
	var texts [][]int32
	r, err := s.openRequest(ctx, actor, id, models.TaskTextEmbedding, func(r *openRequest) (err error) {
		texts, err = in.texts(r.ctx, r.Deployment, r.generation)
		return err
	})
	if err != nil {
		return v, err
	}
	defer r.Close()
	v.Deployment = r.Deployment
	for _, tokens := range texts {
		v.Tokens += len(tokens)
	}
	v.Vectors, err = r.sequence.Embed(texts, int(r.Deployment.Context), r.generation.Embedding.Normalize)
	if err = cmp.Or(context.Cause(r.ctx), err); errors.Is(err, serving.ErrNotNumber) {
		err = models.Invalid("input", "has an embedding that is not a number")
	}
	err = partFailed(err)
	r.done(v.Tokens, len(v.Vectors), err)
	return v, err
}

// texts are the tokens of each text.
func (in EmbeddingInput) texts(ctx context.Context, d models.Deployment, g serving.Generation) (list [][]int32, err error) {
	if g.Embedding == nil {
		return nil, models.Unavailable(nil, "The parts of this deployment are not written yet. Repeat the request later.")
	}
	if in.EncodingFormat != "" && in.EncodingFormat != "float" && in.EncodingFormat != "base64" {
		return nil, models.Invalid("encoding_format", "must be float or base64")
	}
	if in.Dimensions != 0 && in.Dimensions != d.Hidden {
		return nil, models.Invalid("dimensions", "must be absent or %d: the embeddings of this model have so many values", d.Hidden)
	}
	inputs, isList := in.Input.([]any)
	isNumber := func(x any) bool { _, is := x.(float64); return is }
	if !isList || len(inputs) > 0 && isNumber(inputs[0]) {
		inputs = []any{in.Input}
	}
	most := min(maxTexts, maxValues/d.Hidden)
	if n := int64(len(inputs)); n < 1 || n > most {
		return nil, models.Invalid("input", "must be from 1 to %d texts, and has %d", most, n)
	}
	for i, input := range inputs {
		var p models.Problems
		tokens := promptOf{g: g, vocabulary: g.Embedding.Vocabulary}.tokens("input", input, &p)
		if n := int64(len(tokens)); p.Err() == nil && (n < 1 || n > d.Context) {
			p.Add("input", "must have from 1 to %d tokens in each text; text %d has %d", d.Context, int64(i+1), n)
		}
		if err := cmp.Or(context.Cause(ctx), p.Err()); err != nil {
			return nil, err
		}
		list = append(list, tokens)
	}
	return list, nil
}
