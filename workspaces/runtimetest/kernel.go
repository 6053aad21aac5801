package runtimetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/models"
)

// Kernel is a connection to the notebook's first kernel.
type Kernel struct {
	conn  *websocket.Conn
	asked int
}

// Connect connects to the notebook's first kernel, which must have been started.
func Connect(t *testing.T, at models.Endpoint, token string) *Kernel {
	t.Helper()
	var kernels []struct{ ID string }
	_, body := Call(t, at, token, "GET", "/api/kernels", "")
	if err := json.Unmarshal([]byte(body), &kernels); err != nil || len(kernels) == 0 {
		t.Fatalf("no kernel: %s", body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k := &Kernel{conn: dial(t, ctx, at, token, "/api/kernels/"+kernels[0].ID+"/channels")}
	t.Cleanup(func() { k.conn.CloseNow() })
	return k
}

// Execute runs Python code on the notebook's first kernel, which must have
// been started, and returns what it printed.
func Execute(t *testing.T, at models.Endpoint, token, code string) string {
	t.Helper()
	k := Connect(t, at, token)
	defer k.conn.CloseNow()
	return k.Execute(t, code)
}

// Execute runs Python code and returns what it printed.
func (k *Kernel) Execute(t *testing.T, code string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := k.send(t, ctx, "execute_request", map[string]any{"code": code, "silent": false, "store_history": false, "user_expressions": map[string]string{}})
	return readOutput(t, ctx, k.conn, id, "execute_reply")
}

// Info asks what the kernel is, as a page does that opens a notebook.
func (k *Kernel) Info(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	readOutput(t, ctx, k.conn, k.send(t, ctx, "kernel_info_request", map[string]any{}), "kernel_info_reply")
}

// send sends a request and returns its id.
func (k *Kernel) send(t *testing.T, ctx context.Context, kind string, content map[string]any) string {
	t.Helper()
	k.asked++
	id := fmt.Sprintf("ask-%d", k.asked)
	request, err := json.Marshal(map[string]any{
		"header":        map[string]string{"msg_id": id, "msg_type": kind, "version": "5.3", "username": "", "session": "test"},
		"parent_header": map[string]string{}, "metadata": map[string]string{}, "channel": "shell", "content": content,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.conn.Write(ctx, websocket.MessageText, request); err != nil {
		t.Fatal(err)
	}
	return id
}

// Terminal is a connection to one of a notebook's terminals.
type Terminal struct {
	conn *websocket.Conn
}

// ConnectTerminal connects to the terminal of that name.
func ConnectTerminal(t *testing.T, at models.Endpoint, token, name string) *Terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := dial(t, ctx, at, token, "/terminals/websocket/"+name)
	t.Cleanup(func() { conn.CloseNow() })
	if _, _, err := conn.Read(ctx); err != nil { // it is set up
		t.Fatal(err)
	}
	return &Terminal{conn: conn}
}

// Type types the text.
func (term *Terminal) Type(t *testing.T, text string) {
	t.Helper()
	message, err := json.Marshal([]string{"stdin", text})
	if err != nil {
		t.Fatal(err)
	}
	if err := term.conn.Write(t.Context(), websocket.MessageText, message); err != nil {
		t.Fatal(err)
	}
}

// Until reads what the terminal prints until it ends with the text.
func (term *Terminal) Until(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var printed strings.Builder
	for !strings.HasSuffix(printed.String(), text) {
		_, b, err := term.conn.Read(ctx)
		if err != nil {
			t.Fatalf("terminal: %v; it printed %q", err, printed.String())
		}
		var message []any
		if err := json.Unmarshal(b, &message); err != nil {
			t.Fatal(err)
		}
		if out, ok := message[len(message)-1].(string); ok && message[0] == "stdout" {
			printed.WriteString(out)
		}
	}
}

func dial(t *testing.T, ctx context.Context, at models.Endpoint, token, path string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(ctx, "ws://localhost"+path, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"token " + token}},
		HTTPClient: &http.Client{Transport: transport(at)},
	})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	conn.SetReadLimit(1 << 20)
	return conn
}

// readOutput gathers what the request printed until it was answered and the
// kernel is idle again.
func readOutput(t *testing.T, ctx context.Context, conn *websocket.Conn, id, reply string) string {
	t.Helper()
	var out strings.Builder
	for replied, idle := false, false; !replied || !idle; {
		_, b, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("kernel: %v; so far it printed %q", err, out.String())
		}
		var m struct {
			Type   string `json:"msg_type"`
			Parent struct {
				ID string `json:"msg_id"`
			} `json:"parent_header"`
			Content struct {
				Text   string `json:"text"`
				State  string `json:"execution_state"`
				EValue string `json:"evalue"`
			} `json:"content"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		if m.Parent.ID != id {
			continue
		}
		out.WriteString(m.Content.Text)
		if m.Type == "error" {
			out.WriteString(m.Content.EValue)
		}
		replied = replied || m.Type == reply
		idle = idle || m.Content.State == "idle"
	}
	return out.String()
}
