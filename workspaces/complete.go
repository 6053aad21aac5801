package workspaces

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

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
	TopP        *float64 `json:"top_p,omitempty" minimum:"0" maximum:"1" doc:"draws only the most probable tokens with this sum; default 1"`
	Seed        *int64   `json:"seed,omitempty" doc:"the same seed draws the same tokens; default: another one each time"`
	Stream      bool     `json:"stream,omitempty" doc:"respond with server-sent events, one for each token, as OpenAI's API does"`
	Logprobs    int64    `json:"logprobs,omitempty" minimum:"0" maximum:"20" doc:"log probabilities of so many tokens per position"`
	Stop        any      `json:"stop,omitempty" doc:"a stop sequence, or a list of up to 4: texts before which the completion ends"`
	N           int64    `json:"n,omitempty" minimum:"1" maximum:"1" doc:"number of completions; only 1 is supported"`
	User        string   `json:"user,omitempty" maxLength:"200" doc:"ignored"`
}

const (
	maxLogprobs      = 20
	maxStops         = 4
	maxStopBytes     = 1000
	defaultMaxTokens = 16
)

// check returns how a prompt is continued. p is what else is wrong.
func (in *CompletionInput) check(g serving.Generation, p models.Problems) (request serving.Input, err error) {
	request = serving.Input{Temperature: 1, TopP: 1, Seed: rand.Uint64(), Logprobs: int(in.Logprobs), End: g.End}
	if in.Temperature != nil {
		if request.Temperature = *in.Temperature; !(request.Temperature >= 0 && request.Temperature <= 2) {
			p.Add("temperature", "must be from 0 to %d", int64(2))
		}
	}
	if in.TopP != nil {
		if request.TopP = *in.TopP; !(request.TopP > 0 && request.TopP <= 1) {
			p.Add("top_p", "must be more than 0 and at most 1")
		}
	}
	if in.Seed != nil {
		request.Seed = uint64(*in.Seed)
	}
	if in.Logprobs < 0 || in.Logprobs > maxLogprobs {
		p.Add("logprobs", "must be from %d to %d", int64(0), int64(maxLogprobs))
	}
	return request, p.Err()
}

// fit sets the prompt, which is of the field, and how many tokens follow it: by default so many.
func (c *OpenCompletion) fit(field string, prompt []int32, most, byDefault int64) error {
	context := c.Deployment.Context
	left := context - int64(len(prompt))
	switch {
	case len(prompt) == 0:
		return models.Invalid(field, "must not be empty")
	case left < 1:
		return models.Invalid(field, "has %d tokens: prompt and completion have at most %d", int64(len(prompt)), context)
	case most < 0 || most > left:
		return models.Invalid("max_tokens", "must be from 1 to %d: prompt and completion have at most %d tokens", left, context)
	}
	c.request.Prompt, c.Prompt = prompt, len(prompt)
	c.request.MaxTokens = int(cmp.Or(most, min(byDefault, left)))
	return nil
}

// stops are the stop sequences.
func (in *CompletionInput) stops(d models.Deployment, g serving.Generation) (list []string, err error) {
	switch v := in.Stop.(type) {
	case nil:
		return nil, nil
	case string:
		list = []string{v}
	case []any:
		for _, x := range v {
			text, _ := x.(string)
			list = append(list, text)
		}
	}
	switch {
	case len(list) == 0 || len(list) > maxStops || slices.ContainsFunc(list, func(t string) bool { return t == "" || len(t) > maxStopBytes }):
		return nil, models.Invalid("stop", "must be a text, or a list of up to %d, of 1 to %d bytes each", int64(maxStops), int64(maxStopBytes))
	case g.Text == nil && !d.TextPrompts:
		return nil, models.Invalid("stop", "must be absent: the model has no tokenizer.json that can be used")
	}
	return list, nil
}

// promptOf is how a text becomes tokens.
type promptOf struct {
	g          serving.Generation
	vocabulary int64 // number of tokens
	isBytes    bool  // a token is a byte of text
}

// tokens are those of a field with a text or a list of token numbers.
func (o promptOf) tokens(field string, input any, p *models.Problems) (prompt []int32) {
	switch v := input.(type) {
	case string:
		switch {
		case o.g.Text != nil:
			return o.g.Text.Encode(v)
		case o.g.NoText != "":
			p.Add(field, "must be a list of token numbers: tokenizer.json cannot be used: %s", o.g.NoText)
			return nil
		case !o.isBytes:
			p.Add(field, "must be a list of token numbers: the model has no tokenizer.json")
			return nil
		}
		for _, b := range []byte(v) {
			prompt = append(prompt, int32(b))
		}
	case []any:
		for _, x := range v {
			n, ok := x.(float64)
			if !ok || n < 0 || n >= float64(o.vocabulary) || n != math.Trunc(n) {
				p.Add(field, "must contain token numbers from 0 to %d", o.vocabulary-1)
				return nil
			}
			prompt = append(prompt, int32(n))
		}
	default:
		p.Add(field, "must be a text or a list of token numbers")
	}
	return prompt
}

// OpenCompletion is a request that is computed next; close it.
type OpenCompletion struct {
	*openRequest
	Prompt   int // tokens
	Logprobs bool

	request serving.Input
	stops   []string
}

// Complete checks a request to continue a prompt, and waits until it can be computed. Whoever
// may launch in the deployment's project may do that, as long as they may. Errors: invalid, with
// the field; rate_limited, if too many requests wait; unavailable, if a part is not ready.
func (s *Service) Complete(ctx context.Context, actor policies.Actor, id int64, in CompletionInput) (*OpenCompletion, error) {
	return s.complete(ctx, actor, id, in, nil)
}

// complete continues a prompt, or a conversation.
func (s *Service) complete(ctx context.Context, actor policies.Actor, id int64, in CompletionInput, conversation []serving.Message) (
	*OpenCompletion, error) {
	c := &OpenCompletion{Logprobs: in.Logprobs > 0}
	r, err := s.openRequest(ctx, actor, id, models.TaskTextGeneration, func(r *openRequest) error {
		c.openRequest = r
		return c.check(in, conversation)
	})
	if err != nil {
		return nil, err
	}
	if c.openRequest = r; conversation == nil {
		return c, nil
	}
	if err := c.render(conversation, in.MaxTokens); err != nil {
		c.done(0, 0, err)
		c.Close()
		return nil, err
	}
	return c, nil
}

// check checks a request, as far as that is possible before it can be computed.
func (c *OpenCompletion) check(in CompletionInput, conversation []serving.Message) (err error) {
	var p models.Problems
	var prompt []int32
	if conversation == nil {
		prompt = promptOf{c.generation, c.Deployment.Vocabulary, c.Deployment.TextPrompts}.tokens("prompt", in.Prompt, &p)
	}
	if c.request, err = in.check(c.generation, p); err != nil {
		return err
	}
	if conversation != nil {
		err = c.checkChat()
	} else {
		err = c.fit("prompt", prompt, in.MaxTokens, defaultMaxTokens)
	}
	if err == nil {
		c.stops, err = in.stops(c.Deployment, c.generation)
	}
	return err
}

// checkChat is a conflict if the model is not one for conversations.
func (c *OpenCompletion) checkChat() error {
	switch {
	case c.generation.Chat == nil:
		return models.Conflict("The model has no chat template, in tokenizer_config.json or chat_template.jinja. Use completions.")
	case c.generation.NoText != "":
		return models.Conflict("The model has no tokenizer.json that can be used: %s", c.generation.NoText)
	case c.generation.Text == nil:
		return models.Conflict("The model has no tokenizer.json, which conversations need.")
	}
	return nil
}

// render makes the prompt of a conversation, which also ends at the token that its tokenizer names.
// Templates that do not know developers, as OpenAI calls them now, get their messages as those of
// the system.
func (c *OpenCompletion) render(conversation []serving.Message, most int64) error {
	chat := *c.generation.Chat
	for i := range conversation {
		if conversation[i].Role == "developer" && !strings.Contains(chat.Template, "developer") {
			conversation[i].Role = "system"
		}
	}
	if end := c.generation.Text.EncodeWhole(chat.EOS); len(end) == 1 {
		c.request.End = append(slices.Clone(c.request.End), end[0])
	}
	text, why, err := c.model.Render(c.ctx, chat, conversation)
	if err := cmp.Or(context.Cause(c.ctx), err); err != nil {
		return partFailed(err)
	}
	if why != "" {
		return models.Invalid("messages", "cannot be made a prompt by the chat template: %s", why)
	}
	return c.fit("messages", c.generation.Text.EncodeWhole(text), most, c.Deployment.Context)
}

// CompletionEnd is how a completion ended.
type CompletionEnd struct {
	Stopped bool   // by the model or a stop sequence, not by the maximum of tokens
	Text    string // that was left: the beginning of a stop sequence, or of a character
}

// Generate computes the completion and passes each token on, with the text that it makes
// complete. If a part fails, the error is unavailable; what was passed on until then is right.
func (c *OpenCompletion) Generate(each func(t serving.Token, text string) error) (end CompletionEnd, err error) {
	text, stop, n := partialText{}, stopSequences{stops: c.stops}, 0
	var unsent error
	end.Stopped, err = c.sequence.Generate(c.request, func(t serving.Token) error {
		if gone := context.Cause(c.ctx); gone != nil {
			return gone
		}
		if n++; n == 1 {
			c.firstToken()
		}
		piece, stopped := stop.add(text.add(c.bytesOf(t.ID)))
		if unsent = each(t, piece); unsent != nil || !stopped {
			return unsent
		}
		return errStopped
	})
	if errors.Is(err, errStopped) {
		c.done(c.Prompt, n, nil)
		return CompletionEnd{Stopped: true}, nil
	}
	err = cmp.Or(context.Cause(c.ctx), err)
	if unsent != nil { // the client has gone, or takes nothing, unless the request was ended
		c.done(c.Prompt, n, cmp.Or(context.Cause(c.ctx), context.Canceled))
	} else {
		c.done(c.Prompt, n, err)
	}
	end.Text = stop.held + strings.ToValidUTF8(string(text.left), "\uFFFD")
	return end, partFailed(err)
}

// TokenText is a token as text; what is no UTF-8 is U+FFFD.
func (c *OpenCompletion) TokenText(token int32) string {
	return strings.ToValidUTF8(c.bytesOf(token), "\uFFFD")
}

// bytesOf are those of a token in a text.
func (c *OpenCompletion) bytesOf(token int32) string {
	switch {
	case c.generation.Text != nil:
		return c.generation.Text.Bytes(token)
	case c.Deployment.TextPrompts && token < 256:
		return string([]byte{byte(token)})
	default:
		return ""
	}
}
