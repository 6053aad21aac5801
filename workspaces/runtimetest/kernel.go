package runtimetest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/models"
)

// Execute runs Python code on the notebook's first kernel, which must have
// been started, and returns what it printed.
func Execute(t *testing.T, at models.Endpoint, token, code string) string {
	t.Helper()
	var kernels []struct{ ID string }
	_, body := Call(t, at, token, "GET", "/api/kernels", "")
	if err := json.Unmarshal([]byte(body), &kernels); err != nil || len(kernels) == 0 {
		t.Fatalf("no kernel: %s", body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := dialKernel(t, ctx, at, token, kernels[0].ID)
	defer conn.CloseNow()
	request, err := json.Marshal(map[string]any{
		"header":        map[string]string{"msg_id": "ask", "msg_type": "execute_request", "version": "5.3", "username": "", "session": "test"},
		"parent_header": map[string]string{}, "metadata": map[string]string{}, "channel": "shell",
		"content": map[string]any{"code": code, "silent": false, "store_history": false, "user_expressions": map[string]string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(ctx, websocket.MessageText, request); err != nil {
		t.Fatal(err)
	}
	return readOutput(t, ctx, conn)
}

func dialKernel(t *testing.T, ctx context.Context, at models.Endpoint, token, id string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(ctx, "ws://localhost/api/kernels/"+id+"/channels", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"token " + token}},
		HTTPClient: &http.Client{Transport: transport(at)},
	})
	if err != nil {
		t.Fatalf("kernel channel: %v", err)
	}
	conn.SetReadLimit(1 << 20)
	return conn
}

// readOutput gathers what the request printed until it was answered and the
// kernel is idle again.
func readOutput(t *testing.T, ctx context.Context, conn *websocket.Conn) string {
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
		if m.Parent.ID != "ask" {
			continue
		}
		out.WriteString(m.Content.Text)
		if m.Type == "error" {
			out.WriteString(m.Content.EValue)
		}
		replied = replied || m.Type == "execute_reply"
		idle = idle || m.Content.State == "idle"
	}
	return out.String()
}
