package workspaces_test

import (
	"os"
	"testing"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/deployments/tokenizer"
)

// bytesTokenizer is a tokenizer whose tokens are the bytes of a text.
func bytesTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	text, err := os.ReadFile("deployments/tokenizer/testdata/bytes.json")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tokenizer.Read(text, 256)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A conversation becomes a prompt by the template; developers are the system for one that does not
// know them, and a message ends where the tokenizer says.
func TestChat(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.computes()
		chat := func(messages ...workspaces.ChatMessage) (prompt, tokens int, end workspaces.CompletionEnd, err error) {
			in := workspaces.ChatInput{Messages: messages, Temperature: new(0.0), MaxCompletionTokens: 3}
			c, err := w.Chat(w.ctx, w.actor, w.id, in)
			if err != nil {
				return 0, 0, end, err
			}
			defer c.Close()
			end, err = c.Generate(func(serving.Token, string) error { tokens++; return nil })
			return c.Prompt, tokens, end, err
		}
		say := func(role, text string) workspaces.ChatMessage {
			return workspaces.ChatMessage{Role: role, Content: text}
		}
		_, _, _, err := chat(say("user", "a"))
		want(t, err, models.KindConflict, "The model has no chat template")
		w.served.kept = serving.Generation{Text: bytesTokenizer(t), Chat: &serving.Chat{Template: "without them"}}
		for template, length := range map[string]int{"without them": len("system:a\nuser:b\n"), "for a developer": len("developer:a\nuser:b\n")} {
			w.served.kept.Chat = &serving.Chat{Template: template}
			prompt, tokens, end, err := chat(say("developer", "a"), say("user", "b"))
			if err != nil || prompt != length || tokens != 3 || end.Stopped {
				t.Errorf("%s: a prompt of %d tokens, %d generated, %v, %v", template, prompt, tokens, end, err)
			}
		}
		w.served.kept.Chat = &serving.Chat{Template: "t", EOS: "\x00"} // which is generated
		if _, tokens, end, err := chat(say("user", "b")); err != nil || tokens != 0 || !end.Stopped {
			t.Errorf("at its end, %d were generated, %v, %v", tokens, end, err)
		}
		_, _, _, err = chat(say("user", string(make([]byte, 70))))
		want(t, err, models.KindInvalid, "has 76 tokens: prompt and completion have at most 64")
		_, _, _, err = chat(workspaces.ChatMessage{Role: "user", Content: []any{map[string]any{"type": "image_url"}}})
		want(t, err, models.KindInvalid, "must contain text only")
	})
}
