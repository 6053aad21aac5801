package runtimetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/models"
)

// patience bounds what a kernel on a busy machine takes to answer.
const patience = 5 * time.Minute

// Kernel is a connection to a kernel.
type Kernel struct {
	conn    *websocket.Conn
	session string // of its own: a kernel refuses a message that it has had already
	asked   int
}

// NewKernel returns the kernel at the other end of a WebSocket of Jupyter's.
func NewKernel(conn *websocket.Conn) *Kernel {
	conn.SetReadLimit(16 << 20)
	return &Kernel{conn: conn, session: rand.Text()}
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
	conn := dial(t, ctx, at, token, "/api/kernels/"+kernels[0].ID+"/channels")
	t.Cleanup(func() { conn.CloseNow() })
	return NewKernel(conn)
}

// Execute runs Python code on the notebook's first kernel, which must have
// been started, and returns what it printed.
func Execute(t *testing.T, at models.Endpoint, token, code string) string {
	t.Helper()
	k := Connect(t, at, token)
	defer k.conn.CloseNow()
	return k.Execute(t.Context(), t, code)
}

// Execute runs Python code, and returns what it printed and the name and message of an
// exception.
func (k *Kernel) Execute(ctx context.Context, t testing.TB, code string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return k.ask(ctx, t, "execute", map[string]any{"code": code, "silent": false, "store_history": false,
		"user_expressions": map[string]string{}})
}

// Info requests what the kernel is, as a page does that opens a notebook.
func (k *Kernel) Info(ctx context.Context, t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k.ask(ctx, t, "kernel_info", map[string]any{})
}

// ask sends a request and gathers what it prints until it was answered and the kernel is
// idle again.
func (k *Kernel) ask(ctx context.Context, t testing.TB, kind string, content map[string]any) string {
	t.Helper()
	k.asked++
	id := fmt.Sprintf("ask-%d", k.asked)
	if err := k.write(ctx, id, kind+"_request", content); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for replied, idle := false, false; !replied || !idle; {
		m, err := k.read(ctx)
		if err != nil {
			t.Fatalf("kernel: %v; so far it printed %q", err, out.String())
		}
		if m.Parent.ID != id {
			continue
		}
		out.WriteString(m.Content.Text)
		if m.Type == "error" {
			fmt.Fprintf(&out, "%s: %s", m.Content.EName, m.Content.EValue)
		}
		replied = replied || m.Type == kind+"_reply"
		idle = idle || m.Content.State == "idle"
	}
	return out.String()
}

// message is one of Jupyter's, as far as it is read.
type message struct {
	Type   string `json:"msg_type"`
	Parent struct {
		ID string `json:"msg_id"`
	} `json:"parent_header"`
	Content struct {
		Text   string `json:"text"`
		State  string `json:"execution_state"`
		EName  string `json:"ename"`
		EValue string `json:"evalue"`
	} `json:"content"`
}

func (k *Kernel) read(ctx context.Context) (m message, err error) {
	_, b, err := k.conn.Read(ctx)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}

func (k *Kernel) write(ctx context.Context, id, kind string, content map[string]any) error {
	request, err := json.Marshal(map[string]any{
		"header":        map[string]string{"msg_id": id, "msg_type": kind, "version": "5.3", "username": "", "session": k.session},
		"parent_header": map[string]string{}, "metadata": map[string]string{}, "channel": "shell", "content": content,
	})
	if err != nil {
		return err
	}
	return k.conn.Write(ctx, websocket.MessageText, request)
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
