package serving

import (
	"context"
	"encoding/json"
	"io/fs"

	"weir/workspaces/shard"
)

const (
	tokenizerConfigName     = "tokenizer_config.json"
	chatTemplateName        = "chat_template.jinja"
	maxTokenizerConfigBytes = 16 << 20
	maxChatTemplateBytes    = 1 << 20
	maxPromptBytes          = 4 << 20 // of what a template makes; the worker has the same limit
)

// Chat is how a conversation becomes a prompt, as transformers has it.
type Chat struct {
	Template string `json:"template"` // of Jinja2
	BOS      string `json:"bos_token"`
	EOS      string `json:"eos_token"`
}

// Message is one of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// token is a token of tokenizer_config.json: its text, or an object that contains it.
type token string

func (t *token) UnmarshalJSON(text []byte) error {
	var object struct{ Content string }
	if json.Unmarshal(text, (*string)(t)) != nil && json.Unmarshal(text, &object) == nil {
		*t = token(object.Content)
	}
	return nil
}

// template is chat_template of tokenizer_config.json: a text, or a list of which the one with the
// name default is used.
type template string

func (t *template) UnmarshalJSON(text []byte) error {
	var list []struct{ Name, Template string }
	if json.Unmarshal(text, (*string)(t)) == nil || json.Unmarshal(text, &list) != nil {
		return nil
	}
	for _, one := range list {
		if one.Name == "default" {
			*t = template(one.Template)
		}
	}
	return nil
}

// readChat reads the template of a model for conversations; nil: it has none.
func readChat(folder fs.FS) (*Chat, error) {
	content, err := shard.ReadSmall(folder, tokenizerConfigName, maxTokenizerConfigBytes)
	if err != nil {
		return nil, err
	}
	var config struct {
		Template template `json:"chat_template"`
		BOS      token    `json:"bos_token"`
		EOS      token    `json:"eos_token"`
	}
	_ = json.Unmarshal(content, &config) // without it, there is no template
	own, err := shard.ReadSmall(folder, chatTemplateName, maxChatTemplateBytes)
	if err != nil {
		return nil, err
	}
	if own != nil {
		config.Template = template(own)
	}
	if config.Template == "" || len(config.Template) > maxChatTemplateBytes {
		return nil, nil
	}
	return &Chat{string(config.Template), string(config.BOS), string(config.EOS)}, nil
}

// Render has the first part make the prompt of a conversation, in its sandbox: a template is a
// program. why says why it cannot; the error is a *PartError.
func (m Model) Render(ctx context.Context, chat Chat, messages []Message) (text, why string, err error) {
	request, err := json.Marshal(struct {
		Chat
		Messages []Message `json:"messages"`
	}{chat, messages})
	if err != nil {
		return "", "", err
	}
	c, err := dial(ctx, m.Parts[0], m.Key)
	if err != nil {
		return "", "", &PartError{0, err}
	}
	defer c.close()
	if err := c.send(header{Op: "render"}, request); err != nil {
		return "", "", &PartError{0, err}
	}
	var answer header
	rendered, err := c.receive(&answer, maxPromptBytes)
	if err != nil {
		return "", "", &PartError{0, err}
	}
	return string(rendered), answer.Error, nil
}
