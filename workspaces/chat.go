package workspaces

import (
	"cmp"
	"context"
	"strings"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
)

// ChatInput is a request of OpenAI's chat completions, as far as it is supported.
type ChatInput struct {
	Model               string             `json:"model,omitempty" maxLength:"200" doc:"name of the deployment; ignored"`
	Messages            []ChatMessage      `json:"messages" minItems:"1" maxItems:"1000" doc:"the conversation so far"`
	MaxTokens           int64              `json:"max_tokens,omitempty" minimum:"0" maximum:"1000000" doc:"maximum of generated tokens; default: as many as the context allows"`
	MaxCompletionTokens int64              `json:"max_completion_tokens,omitempty" minimum:"0" maximum:"1000000" doc:"the same as max_tokens, which is used if both are stated"`
	Temperature         *float64           `json:"temperature,omitempty" minimum:"0" maximum:"2" doc:"0: always the most probable token; default 1"`
	TopP                *float64           `json:"top_p,omitempty" minimum:"0" maximum:"1" doc:"draws only the most probable tokens with this sum; default 1"`
	Seed                *int64             `json:"seed,omitempty" doc:"the same seed draws the same tokens; default: another one each time"`
	Stream              bool               `json:"stream,omitempty" doc:"respond with server-sent events, one for each token, as OpenAI's API does"`
	Logprobs            bool               `json:"logprobs,omitempty" doc:"return log probabilities of the generated tokens"`
	TopLogprobs         int64              `json:"top_logprobs,omitempty" minimum:"0" maximum:"20" doc:"also of so many tokens per position"`
	Stop                any                `json:"stop,omitempty" doc:"a stop sequence, or a list of up to 4: texts before which the message ends"`
	N                   int64              `json:"n,omitempty" minimum:"1" maximum:"1" doc:"number of messages; only 1 is supported"`
	User                string             `json:"user,omitempty" maxLength:"200" doc:"ignored"`
	FrequencyPenalty    float64            `json:"frequency_penalty,omitempty" minimum:"0" maximum:"0" doc:"only 0 is supported"`
	PresencePenalty     float64            `json:"presence_penalty,omitempty" minimum:"0" maximum:"0" doc:"only 0 is supported"`
	StreamOptions       *ChatStreamOptions `json:"stream_options,omitempty" doc:"ignored: the last event always has the numbers of tokens"`
}

// ChatStreamOptions are options of the events.
type ChatStreamOptions struct {
	IncludeUsage bool `json:"include_usage,omitempty" doc:"ignored"`
}

// ChatMessage is a message of a conversation.
type ChatMessage struct {
	Role    string `json:"role" enum:"system,developer,user,assistant" doc:"who has written it"`
	Content any    `json:"content" doc:"text, or a list of parts with the type text"`
	Name    string `json:"name,omitempty" maxLength:"200" doc:"ignored"`
}

// text is the text of a message.
func (m ChatMessage) text() (string, error) {
	switch v := m.Content.(type) {
	case string:
		return v, nil
	case []any:
		var texts []string
		for _, x := range v {
			part, _ := x.(map[string]any)
			text, ok := part["text"].(string)
			if !ok || part["type"] != "text" {
				return "", models.Invalid("messages", "must contain text only: images and other types are not supported")
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, "\n"), nil
	default:
		return "", models.Invalid("messages", "must have a text, or a list of parts with the type text, as content")
	}
}

// Chat is [Service.Complete] for the next message of a conversation, which the template of the
// model makes a prompt.
func (s *Service) Chat(ctx context.Context, actor policies.Actor, id int64, in ChatInput) (*OpenCompletion, error) {
	conversation := []serving.Message{}
	for _, m := range in.Messages {
		text, err := m.text()
		if err != nil {
			return nil, err
		}
		conversation = append(conversation, serving.Message{Role: m.Role, Content: text})
	}
	if len(conversation) == 0 {
		return nil, models.Invalid("messages", "must not be empty")
	}
	if in.TopLogprobs > 0 && !in.Logprobs {
		return nil, models.Invalid("top_logprobs", "requires logprobs")
	}
	c, err := s.complete(ctx, actor, id, CompletionInput{MaxTokens: cmp.Or(in.MaxTokens, in.MaxCompletionTokens), Temperature: in.Temperature,
		TopP: in.TopP, Seed: in.Seed, Logprobs: in.TopLogprobs, Stop: in.Stop}, conversation)
	if err == nil {
		c.Logprobs = in.Logprobs
	}
	return c, err
}
