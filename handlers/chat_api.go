package handlers

import (
	"context"
	"fmt"

	"weir/workspaces"
	"weir/workspaces/deployments/serving"
)

// ChatCompletion is the next message of a conversation, as OpenAI's API returns it.
type ChatCompletion struct {
	ID      string          `json:"id" doc:"identifier of this completion"`
	Object  string          `json:"object" enum:"chat.completion"`
	Created int64           `json:"created" doc:"seconds since 1970"`
	Model   string          `json:"model" doc:"name of the deployment"`
	Choices []ChatChoice    `json:"choices" doc:"the generated message"`
	Usage   CompletionUsage `json:"usage" doc:"numbers of tokens"`
}

// ChatChoice is a generated message.
type ChatChoice struct {
	Index        int              `json:"index" doc:"always 0"`
	Message      AssistantMessage `json:"message"`
	FinishReason string           `json:"finish_reason" enum:"length,stop" doc:"length: at the maximum of tokens; stop: by the model, or at a stop sequence"`
	Logprobs     *ChatLogprobs    `json:"logprobs,omitempty" doc:"logarithmic probabilities, if they were requested"`
}

// AssistantMessage is the message of the model.
type AssistantMessage struct {
	Role    string `json:"role,omitempty" enum:"assistant"`
	Content string `json:"content" doc:"generated text"`
}

// ChatLogprobs are logarithmic probabilities of tokens.
type ChatLogprobs struct {
	Content []ChatToken `json:"content" doc:"of the generated tokens"`
}

// ChatToken is a generated token with the most probable ones at its position.
type ChatToken struct {
	ChatCandidate
	TopLogprobs []ChatCandidate `json:"top_logprobs" doc:"of the most probable tokens at its position"`
}

// ChatCandidate is a token with its logarithmic probability.
type ChatCandidate struct {
	Token   string  `json:"token" doc:"its text"`
	Logprob float64 `json:"logprob" doc:"its logarithmic probability"`
}

// ChatEvent is a part of a generated message, as OpenAI's API sends it.
type ChatEvent struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"` // chat.completion.chunk
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	Choices []ChatDelta      `json:"choices"`
	Usage   *CompletionUsage `json:"usage,omitempty"` // in the last one
}

// ChatDelta is what an event adds to a generated message.
type ChatDelta struct {
	Index        int              `json:"index"`
	Delta        AssistantMessage `json:"delta"`
	FinishReason *string          `json:"finish_reason"` // null: it goes on
	Logprobs     *ChatLogprobs    `json:"logprobs,omitempty"`
}

func (a rest) createChatCompletion(ctx context.Context, in *CreateIn[workspaces.ChatInput]) (*CompletionResponse, error) {
	c, err := a.Workspaces.Chat(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	now := a.Store.Now()
	return a.complete(c, in.Body.Stream, &chatForm{completion: c, ChatCompletion: ChatCompletion{Object: "chat.completion",
		ID: fmt.Sprintf("chatcmpl-%d-%x", c.Deployment.ID, now.UnixNano()), Created: now.Unix(), Model: c.Deployment.Name}})
}

// chatForm is the next message of a conversation.
type chatForm struct {
	ChatCompletion
	completion *workspaces.OpenCompletion
}

func (f *chatForm) whole(tokens []serving.Token, text, finish string, usage CompletionUsage) any {
	f.Choices = []ChatChoice{{Message: AssistantMessage{"assistant", text}, FinishReason: finish, Logprobs: f.logprobs(tokens...)}}
	f.Usage = usage
	return f.ChatCompletion
}

func (f *chatForm) begin() any {
	return f.event(nil, ChatDelta{Delta: AssistantMessage{Role: "assistant"}})
}

func (f *chatForm) delta(t serving.Token, text string) any {
	return f.event(nil, ChatDelta{Delta: AssistantMessage{Content: text}, Logprobs: f.logprobs(t)})
}

func (f *chatForm) last(end workspaces.CompletionEnd, usage CompletionUsage) any {
	return f.event(&usage, ChatDelta{Delta: AssistantMessage{Content: end.Text}, FinishReason: new(finishOf(end))})
}

func (f *chatForm) event(usage *CompletionUsage, delta ChatDelta) ChatEvent {
	return ChatEvent{f.ID, "chat.completion.chunk", f.Created, f.Model, []ChatDelta{delta}, usage}
}

// logprobs are the log probabilities of tokens, if they were requested.
func (f *chatForm) logprobs(tokens ...serving.Token) *ChatLogprobs {
	if !f.completion.Logprobs {
		return nil
	}
	v := &ChatLogprobs{Content: []ChatToken{}}
	for _, t := range tokens {
		one := ChatToken{ChatCandidate{f.completion.TokenText(t.ID), t.Logprob}, []ChatCandidate{}}
		for _, c := range t.Top {
			one.TopLogprobs = append(one.TopLogprobs, ChatCandidate{f.completion.TokenText(c.ID), c.Logprob})
		}
		v.Content = append(v.Content, one)
	}
	return v
}
