package workspaces

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"

	"weir/models"
	"weir/policies"

	"weir/workspaces/deployments/serving"
)

// CompletionInput is a request of OpenAI's completions, as far as it is supported.
type CompletionInput struct {
	Model       string   `json:"model,omitempty" maxLength:"200" doc:"name of the deployment; ignored"`
	Prompt      any      `json:"prompt" doc:"text, or a list of token numbers"`
	MaxTokens   int64    `json:"max_tokens,omitempty" minimum:"0" maximum:"1000000" doc:"maximum of generated tokens; default 16"`
	Temperature *float64 `json:"temperature,omitempty" minimum:"0" maximum:"2" doc:"0: always the most probable token; default 1"`
	Seed        int64    `json:"seed,omitempty" doc:"the same seed draws the same tokens"`
	Logprobs    int64    `json:"logprobs,omitempty" minimum:"0" maximum:"20" doc:"log probabilities of so many tokens per position"`
}

// Completion is what a deployment has generated.
type Completion struct {
	Deployment models.Deployment
	Prompt     int // tokens
	Text       string
	Tokens     []serving.Token
	Logprobs   bool
	Full       bool // the maximum of tokens was reached
}

const defaultMaxTokens = 16

// slots bound the requests that a deployment computes at once.
type slots struct {
	mu   sync.Mutex
	used map[int64]chan struct{}
}

func (s *slots) of(d models.Deployment) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[int64]chan struct{}{}
	}
	if s.used[d.ID] == nil {
		s.used[d.ID] = make(chan struct{}, d.Batch)
	}
	return s.used[d.ID]
}

// tokens checks the input and returns its prompt.
func (in *CompletionInput) tokens(d models.Deployment) (prompt []int32, err error) {
	var p models.Problems
	switch v := in.Prompt.(type) {
	case string:
		if !d.TextPrompts {
			p.Add("prompt", "must be a list of token numbers: this deployment does not read the model's tokenizer")
		}
		for _, b := range []byte(v) {
			prompt = append(prompt, int32(b))
		}
	case []any:
		for _, x := range v {
			n, ok := x.(float64)
			if !ok || n < 0 || n >= float64(d.Vocabulary) || n != math.Trunc(n) {
				p.Add("prompt", "must contain token numbers from 0 to %d", d.Vocabulary-1)
				break
			}
			prompt = append(prompt, int32(n))
		}
	default:
		p.Add("prompt", "must be a text or a list of token numbers")
	}
	if in.MaxTokens == 0 {
		in.MaxTokens = defaultMaxTokens
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if len(prompt) == 0 {
		return nil, models.Invalid("prompt", "must not be empty")
	}
	if left := d.Context - int64(len(prompt)); in.MaxTokens < 0 || in.MaxTokens > left {
		return nil, models.Invalid("max_tokens", "must be from 1 to %d: prompt and completion have at most %d tokens", max(left, 0), d.Context)
	}
	return prompt, nil
}

// Complete continues a prompt. Whoever may launch in the deployment's project may do that. If a
// part fails meanwhile, the error is unavailable and nothing is returned.
func (s *Service) Complete(ctx context.Context, actor policies.Actor, id int64, in CompletionInput) (c Completion, err error) {
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return c, err
	}
	if err := s.access.Check(actor, v.ProjectID, policies.WorkspaceLaunch); err != nil {
		return c, err
	}
	d := v.Deployment
	prompt, err := in.tokens(d)
	if err != nil {
		return c, err
	}
	if s.Parts == nil || d.State != models.DeploymentServing {
		return c, models.Unavailable(nil, "This deployment is %s.", d.State.Words())
	}
	slot := s.slots.of(d)
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
	case <-ctx.Done():
		return c, ctx.Err()
	}
	model, err := s.servedModel(ctx, d)
	if err != nil {
		return c, err
	}
	c = Completion{Deployment: d, Prompt: len(prompt), Logprobs: in.Logprobs > 0}
	request := serving.Input{Prompt: prompt, MaxTokens: int(in.MaxTokens), Temperature: 1, Seed: uint64(in.Seed), Logprobs: int(in.Logprobs)}
	if in.Temperature != nil {
		request.Temperature = *in.Temperature
	}
	err = model.Generate(ctx, request, func(t serving.Token) bool {
		c.Tokens = append(c.Tokens, t)
		return true
	})
	var failed *serving.PartError
	if errors.As(err, &failed) {
		return Completion{}, models.Unavailable(err, "Part %d did not respond. It is started again; repeat the request then.",
			int64(failed.Part+1))
	}
	c.Full = len(c.Tokens) == int(in.MaxTokens)
	if d.TextPrompts {
		c.Text = textOf(c.Tokens)
	}
	return c, err
}

// servedModel is the model of a deployment whose parts are all ready.
func (s *Service) servedModel(ctx context.Context, d models.Deployment) (m serving.Model, err error) {
	parts, err := s.store.Read(ctx).DeploymentParts(d.ID)
	if err != nil {
		return m, err
	}
	m = serving.Model{Key: d.Key(), Hidden: int(d.Hidden), Vocabulary: int(d.Vocabulary)}
	for _, p := range parts {
		if p.State != models.PartReady {
			return m, models.Unavailable(nil, "Part %d is %s. Repeat the request later.", p.Number+1, p.State.Words())
		}
		m.Parts = append(m.Parts, func(ctx context.Context) (net.Conn, error) {
			return s.Parts.Dial(ctx, p.RuntimeState, serving.SocketName)
		})
	}
	return m, nil
}

// textOf is the text of tokens that are bytes.
func textOf(tokens []serving.Token) string {
	var b []byte
	for _, t := range tokens {
		if t.ID < 256 {
			b = append(b, byte(t.ID))
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
