package handlers

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A launch is answered as such even if it cannot be read any more, so that a client does
// not launch twice.
func TestALaunchIsAnsweredWithoutARead(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.store.OnChange(func(topics []string) {
			if slices.ContainsFunc(topics, func(topic string) bool { return strings.HasPrefix(topic, "workspace:") }) {
				cancel() // after the commit
			}
		})
		r := httptest.NewRequestWithContext(ctx, "POST", apiPrefix+"/workspaces", strings.NewReader(`{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+w.member)
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		if rec.Code != 201 || ctx.Err() == nil || !strings.HasPrefix(rec.Header().Get("Location"), apiPrefix+"/workspaces/") ||
			!strings.Contains(rec.Body.String(), `"state":"starting"`) {
			t.Errorf("%d %v: %s", rec.Code, rec.Header(), rec.Body)
		}
	})
}
