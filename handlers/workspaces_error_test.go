package handlers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"weir/models"
)

// At a workspace's own address, each kind of error has its status and sentence and one way on,
// and only admitted visitors learn a workspace's name.
func TestWorkspaceErrorPage(t *testing.T) {
	w := newWorld(t)
	v := visitor{world: w}
	n := w.create(w.member, "/workspaces", `{"name":"secret","project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	show := func(status int, err *models.Error) string {
		t.Helper()
		r, rec := httptest.NewRequestWithContext(t.Context(), "GET", "http://ws-"+id(n)+".localhost:8080/lab", nil), httptest.NewRecorder()
		w.app.ServeWorkspaceError(rec, r, status, err, "https://weir.example.org")
		if rec.Code != status {
			t.Errorf("%v: status %d, want %d", err, rec.Code, status)
		}
		return rec.Body.String()
	}
	here := "https://weir.example.org/workspaces/" + id(n)
	open := `href="` + here + `/open">Open workspace<`
	for _, c := range []struct {
		status int
		err    *models.Error
		wanted []string
	}{
		{401, &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Open this workspace from the portal.")},
			[]string{"Sign in to continue", "Open this workspace from the portal.", open}},
		{403, models.Forbidden("Cross-site requests are not allowed."), []string{"Access denied", "Cross-site requests are not allowed.", open}},
		{404, models.NotFound("workspace"), []string{"Not found", "you do not have access to it", `href="https://weir.example.org/">Go to Weir<`, "!/open"}},
		{408, &models.Error{Kind: models.KindInvalid, Message: models.Say("The upload has paused for too long. Send it again.")},
			[]string{"Invalid request", "The upload has paused for too long.", open}},
		{500, &models.Error{Kind: models.KindInternal, Message: models.Say("Something went wrong. Try again in a moment.")},
			[]string{"Something went wrong", "Try again in a moment.", open}},
		{503, models.Unavailable(nil, "The database is not responding."), []string{"Service unavailable", "The database is not responding.", open}},
		{409, models.Conflict("This workspace is starting. Try again in a moment."),
			[]string{"Workspace secret is not ready yet", `href="` + here + `">Go to Weir<`}},
	} {
		page := show(c.status, c.err)
		v.shows(page, c.wanted...)
		if c.status != http.StatusConflict {
			v.shows(page, "!secret")
		}
		if c.status != http.StatusNotFound {
			v.shows(page, "!Not found", "!not found")
		}
	}
	w.running(n)
	v.shows(show(http.StatusBadGateway, models.Unavailable(nil, "The workspace is not responding.")),
		"Workspace secret is not responding", `href="`+here+`">Go to Weir<`)
	w.want(202, w.member, "POST", "/workspaces/"+id(n)+"/stop", "")
	v.shows(show(http.StatusConflict, models.Conflict("This workspace is stopping.")), "Workspace secret has stopped", "Launch again")
}
