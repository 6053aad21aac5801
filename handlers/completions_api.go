package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
)

// ServedModels lists models as OpenAI's API does.
type ServedModels struct {
	Object string        `json:"object" enum:"list"`
	Data   []ServedModel `json:"data" doc:"the model of the deployment"`
}

// ServedModel is a model as OpenAI's API describes it.
type ServedModel struct {
	ID      string `json:"id" doc:"name of the deployment"`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"when it was requested, seconds since 1970"`
	OwnedBy string `json:"owned_by" doc:"name of the project"`
}

func (a rest) listServedModels(ctx context.Context, in *ByID) (*Response[ServedModels], error) {
	d, err := a.Workspaces.ViewDeployment(ctx, actorOf(ctx), in.ID)
	return &Response[ServedModels]{ServedModels{"list", []ServedModel{{d.Name, "model", d.RequestedAt.Unix(), d.ProjectName}}}}, err
}

// Completion is what a deployment has generated, as OpenAI's API returns it.
type Completion struct {
	ID      string             `json:"id" doc:"identifier of this completion"`
	Object  string             `json:"object" enum:"text_completion"`
	Created int64              `json:"created" doc:"seconds since 1970"`
	Model   string             `json:"model" doc:"name of the deployment"`
	Choices []CompletionChoice `json:"choices" doc:"the completion"`
	Usage   CompletionUsage    `json:"usage" doc:"numbers of tokens"`
}

// CompletionChoice is a generated continuation.
type CompletionChoice struct {
	Index        int                 `json:"index" doc:"always 0"`
	Text         string              `json:"text" doc:"generated text; empty if the prompt must be token numbers"`
	TokenIDs     []int32             `json:"token_ids" doc:"generated tokens"`
	FinishReason string              `json:"finish_reason" enum:"length,stop" doc:"length: at the maximum of tokens; stop: by the model, or at a stop sequence"`
	Logprobs     *CompletionLogprobs `json:"logprobs,omitempty" doc:"logarithmic probabilities, if they were requested"`
}

// CompletionLogprobs are logarithmic probabilities of tokens, which are named by their numbers.
type CompletionLogprobs struct {
	TokenLogprobs []float64            `json:"token_logprobs" doc:"of the generated tokens"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs" doc:"of the most probable tokens at each position"`
}

// CompletionUsage counts tokens.
type CompletionUsage struct {
	Prompt     int `json:"prompt_tokens" doc:"tokens of the prompt"`
	Completion int `json:"completion_tokens" doc:"generated tokens"`
	Total      int `json:"total_tokens" doc:"sum of both"`
}

func logprobsOf(tokens []serving.Token) *CompletionLogprobs {
	v := &CompletionLogprobs{}
	for _, t := range tokens {
		top := map[string]float64{}
		for _, c := range t.Top {
			top[strconv.Itoa(int(c.ID))] = c.Logprob
		}
		v.TokenLogprobs, v.TopLogprobs = append(v.TokenLogprobs, t.Logprob), append(v.TopLogprobs, top)
	}
	return v
}

// CompletionResponse writes a completion at once or as events.
type CompletionResponse struct{ Body func(huma.Context) }

func (a rest) createCompletion(ctx context.Context, in *CreateIn[workspaces.CompletionInput]) (*CompletionResponse, error) {
	c, err := a.Workspaces.Complete(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	now := a.Store.Now()
	return a.complete(c, in.Body.Stream, &textForm{completion: c, Completion: Completion{Object: "text_completion", Created: now.Unix(),
		ID: fmt.Sprintf("cmpl-%d-%x", c.Deployment.ID, now.UnixNano()), Model: c.Deployment.Name}})
}

// completionForm is how a completion is written: at once or as events.
type completionForm interface {
	// begin is the first event; nil: there is none.
	begin() any
	// delta is the event of a token, with the text that it makes complete.
	delta(t serving.Token, text string) any
	// last is the event of the end.
	last(end workspaces.CompletionEnd, usage CompletionUsage) any
	// whole is the response for all tokens and their text.
	whole(tokens []serving.Token, text, finish string, usage CompletionUsage) any
}

// complete generates a completion and writes it in its form.
func (a rest) complete(c *workspaces.OpenCompletion, stream bool, form completionForm) (*CompletionResponse, error) {
	if stream {
		return &CompletionResponse{func(hc huma.Context) {
			defer c.Close()
			newCompletionEvents(hc, c).send(a.App, form)
		}}, nil
	}
	defer c.Close()
	tokens, text := []serving.Token{}, strings.Builder{}
	end, err := c.Generate(func(t serving.Token, piece string) error {
		tokens = append(tokens, t)
		text.WriteString(piece)
		return nil
	})
	if err != nil {
		return nil, err
	}
	text.WriteString(end.Text)
	v := form.whole(tokens, text.String(), finishOf(end), tokensUsed(c, len(tokens)))
	return &CompletionResponse{func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		hc.SetStatus(http.StatusOK)
		_ = json.NewEncoder(hc.BodyWriter()).Encode(v) // the client has gone
	}}, nil
}

// textForm is a completion of text.
type textForm struct {
	Completion
	completion *workspaces.OpenCompletion
}

func (f *textForm) whole(tokens []serving.Token, text, finish string, usage CompletionUsage) any {
	choice := CompletionChoice{Text: text, TokenIDs: idsOf(tokens), FinishReason: finish, Logprobs: f.logprobs(tokens...)}
	f.Choices, f.Usage = []CompletionChoice{choice}, usage
	return f.Completion
}

func (f *textForm) begin() any { return nil }

func (f *textForm) delta(t serving.Token, text string) any {
	return f.event(nil, CompletionDelta{Text: text, TokenIDs: []int32{t.ID}, Logprobs: f.logprobs(t)})
}

func (f *textForm) last(end workspaces.CompletionEnd, usage CompletionUsage) any {
	return f.event(&usage, CompletionDelta{Text: end.Text, TokenIDs: []int32{}, FinishReason: new(finishOf(end))})
}

func (f *textForm) event(usage *CompletionUsage, delta CompletionDelta) CompletionEvent {
	return CompletionEvent{f.ID, f.Object, f.Created, f.Model, []CompletionDelta{delta}, usage}
}

// logprobs are the log probabilities of tokens, if they were requested.
func (f *textForm) logprobs(tokens ...serving.Token) *CompletionLogprobs {
	if !f.completion.Logprobs {
		return nil
	}
	return logprobsOf(tokens)
}

func idsOf(tokens []serving.Token) []int32 {
	return models.Map(tokens, func(t serving.Token) int32 { return t.ID })
}

func finishOf(end workspaces.CompletionEnd) string {
	if end.Stopped {
		return "stop"
	}
	return "length"
}

func tokensUsed(c *workspaces.OpenCompletion, generated int) CompletionUsage {
	return CompletionUsage{c.Prompt, generated, c.Prompt + generated}
}

// CompletionEvent is a part of a completion, as OpenAI's API sends it.
type CompletionEvent struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created"`
	Model   string            `json:"model"`
	Choices []CompletionDelta `json:"choices"`
	Usage   *CompletionUsage  `json:"usage,omitempty"` // in the last one
}

// CompletionDelta is what an event adds to a completion.
type CompletionDelta struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	TokenIDs     []int32             `json:"token_ids"`
	FinishReason *string             `json:"finish_reason"` // null: it goes on
	Logprobs     *CompletionLogprobs `json:"logprobs,omitempty"`
}

// eventTimeout is how long a client may take to receive an event. It does not keep others
// waiting for longer.
const eventTimeout = 30 * time.Second

// completionEvents sends a completion as server-sent events while the right for it lasts.
type completionEvents struct {
	completion *workspaces.OpenCompletion
	w          http.ResponseWriter
	connection *http.ResponseController

	mu  sync.Mutex
	cut bool
}

func newCompletionEvents(hc huma.Context, c *workspaces.OpenCompletion) *completionEvents {
	w := humaecho.Unwrap(hc).Response()
	return &completionEvents{completion: c, w: w, connection: http.NewResponseController(w)}
}

// stop ends the connection: nothing more is sent, also of what the client has not received.
func (e *completionEvents) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut = true
	_ = e.connection.SetWriteDeadline(time.Unix(1, 0)) // a test's recorder has no connection
}

// write sends an event.
func (e *completionEvents) write(data string) error {
	e.mu.Lock()
	if e.cut {
		e.mu.Unlock()
		return context.Cause(e.completion.Context())
	}
	_ = e.connection.SetWriteDeadline(time.Now().Add(eventTimeout))
	e.mu.Unlock()
	if _, err := fmt.Fprintf(e.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return e.connection.Flush()
}

func (e *completionEvents) writeJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.write(string(text))
}

// send generates the completion.
func (e *completionEvents) send(a *App, form completionForm) {
	defer context.AfterFunc(e.completion.Context(), e.stop)()
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // by nginx
	e.w.WriteHeader(http.StatusOK)
	if err := e.generate(form); err != nil {
		e.fail(a, err)
	}
	_ = e.connection.SetWriteDeadline(time.Time{}) // for the next request of the connection
}

func (e *completionEvents) generate(form completionForm) error {
	if first := form.begin(); first != nil {
		if err := e.writeJSON(first); err != nil {
			return err
		}
	}
	n := 0
	end, err := e.completion.Generate(func(t serving.Token, text string) error {
		n++
		return e.writeJSON(form.delta(t, text))
	})
	if err != nil {
		return err
	}
	if err := e.writeJSON(form.last(end, tokensUsed(e.completion, n))); err != nil {
		return err
	}
	return e.write("[DONE]")
}

// fail says why the completion is not whole, and ends the connection.
func (e *completionEvents) fail(a *App, err error) {
	p := problemOf(err)
	_ = e.writeJSON(map[string]any{"error": map[string]any{"message": p.Detail, "code": p.Status}}) // if there is still a client
	a.Logger.DebugContext(e.completion.Context(), "a completion was cut off", "deployment", e.completion.Deployment.ID, "err", err)
	panic(http.ErrAbortHandler)
}
