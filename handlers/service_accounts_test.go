package handlers

import (
	"fmt"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// robot adds a service account with the role of the world, and a token for it.
func (w *world) robot(scopes string) (at, secret string) {
	w.Helper()
	w.runner = w.create(w.admin, "/projects/"+id(w.project)+"/roles", `{"name":"runner","permission":"member","limit":`+slice+`}`)
	made := w.want(201, w.manager, "POST", "/projects/"+id(w.project)+"/service-accounts", `{"name":"nightly","role_id":`+id(w.runner)+`}`)
	if made.body["kind"] != "service" || made.body["name"] != "nightly" || strings.Contains(made.body["email"].(string), "@") {
		w.Errorf("%s", made.raw)
	}
	at = made.header.Get("Location")[len(apiPrefix):]
	token := w.want(201, w.manager, "POST", at+"/tokens", `{"name":"ci","scopes":[`+scopes+`]}`)
	return at, token.body["secret"].(string)
}

func TestServiceAccounts(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		project := "/projects/" + id(w.project)
		at, secret := w.robot(`"launch","project"`)
		launched := w.want(201, secret, "POST", "/workspaces", `{"project_id":`+id(w.project)+`,"environment_id":`+id(w.environment)+`}`)
		if owner := w.get(w.manager, launched.header.Get("Location")[len(apiPrefix):]).body; owner["member"] != "nightly" && !strings.Contains(fmt.Sprint(owner), "nightly") {
			t.Errorf("%v", owner)
		}
		me := w.get(secret, "/me").body
		if me["kind"] != "service" || me["name"] != "nightly" {
			t.Errorf("%v", me)
		}
		// It has a role's rights in its project and nothing else.
		w.want(403, secret, "POST", project+"/members", `{"email":"eve@example.org","role_id":`+id(w.role)+`}`)
		w.want(403, secret, "POST", "/requests", `{"reason":"x","role":{"project_id":`+id(w.project)+`,"name":"expert","permission":"member","limit":`+slice+`}}`)
		w.want(403, secret, "POST", "/tokens", `{"name":"more"}`)
		w.want(403, secret, "PUT", "/me/password", `{"current":"x","password":"correct horse"}`)
		w.want(403, secret, "GET", "/users", "")
		w.get(secret, "/pool")

		w.want(422, w.manager, "POST", at+"/tokens", `{"name":"root","scopes":["admin"]}`)
		w.want(422, w.manager, "POST", project+"/service-accounts", `{"name":"nightly","role_id":`+id(w.runner)+`}`)
		w.want(422, w.manager, "POST", project+"/service-accounts", `{"name":"Nightly@x","role_id":`+id(w.role)+`}`)
		w.want(403, w.member, "POST", project+"/service-accounts", `{"name":"mine","role_id":`+id(w.role)+`}`)
		w.want(403, w.member, "GET", at+"/tokens", "")
		w.want(404, w.stranger, "GET", at+"/tokens", "")
		person := project + "/members/" + id(w.place)
		w.want(404, w.manager, "POST", person+"/tokens", `{"name":"x"}`)
		if list := w.get(w.manager, at+"/tokens"); strings.Contains(list.raw, secret) || len(list.body["items"].([]any)) != 1 {
			t.Errorf("%s", list.raw)
		}
		audit := w.get(w.admin, "/audit?object=token&project_id="+id(w.project)).raw
		if !strings.Contains(audit, `"boss@example.org"`) || !strings.Contains(audit, `"create"`) {
			t.Errorf("the audit log does not name who made the token: %s", audit)
		}
		if trail := w.get(w.admin, "/audit?object=workspace").raw; !strings.Contains(trail, models.ServiceAccountID(w.project, "nightly")) || !strings.Contains(trail, "token ci") {
			t.Errorf("the audit log does not name the service account: %s", trail)
		}

		w.want(204, w.manager, "DELETE", at, "")
		w.want(401, secret, "GET", "/me", "")
		again := w.want(201, w.manager, "POST", project+"/service-accounts", `{"name":"nightly","role_id":`+id(w.runner)+`}`)
		if again.header.Get("Location")[len(apiPrefix):] != at {
			t.Errorf("added again as %s, not %s", again.header.Get("Location"), at)
		}
		w.want(401, secret, "GET", "/me", "")
	})
}

// No input of a person's address reaches a service account, and nothing makes it more
// than a member of its project.
func TestServiceAccountsAreNotPeople(t *testing.T) {
	w := newWorld(t)
	at, secret := w.robot(`"launch"`)
	user := w.get(w.admin, at).body["user_id"].(float64)
	email := models.ServiceAccountID(w.project, "nightly")
	other := w.create(w.admin, "/projects", `{"name":"other","quota":`+plenty+beyond+`}`)
	role := w.create(w.admin, "/projects/"+id(other)+"/roles", `{"name":"any","permission":"member","limit":`+slice+`}`)
	person := "/users/" + id(int64(user))
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{422, "POST", "/projects/" + id(other) + "/members", `{"email":"` + email + `","role_id":` + id(role) + `}`},
		{422, "POST", "/projects/" + id(other) + "/invitations", `{"emails":["` + email + `"],"role_id":` + id(role) + `}`},
		{422, "POST", "/invitations", `{"emails":["` + email + `"]}`},
		{422, "POST", "/users", `{"email":"` + email + `","name":"x","password":"correct horse"}`},
		{409, "PUT", person, `{"name":"nightly","admin":true,"disabled":false}`},
		{409, "PUT", person, `{"name":"other","admin":false,"disabled":false}`},
		{409, "PUT", person + "/password", `{"password":"correct horse"}`},
		{409, "POST", person + "/password-link", ``},
	} {
		if got := w.send(w.admin, c.method, c.path, c.body); got.status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.raw)
		}
	}
	_, _, err := w.app.Accounts.CreateTokenFor(t.Context(), policies.System("admin"), email, policies.NewToken{Name: "x"})
	if models.KindOf(err) != models.KindConflict {
		t.Errorf("%v", err)
	}
	if _, err := w.app.Accounts.SignIn(t.Context(), "192.0.2.1", email, "correct horse"); models.KindOf(err) != models.KindUnauthenticated {
		t.Errorf("%v", err)
	}
	w.store.Mail = true
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		return q.Notify([]int64{int64(user)}, models.Notification{Kind: "request.approved", Text: models.Say("Your request was approved: %s.", "x"), Link: "/projects"})
	})
	if n := w.rows("SELECT COUNT(*) FROM notifications WHERE user_id = ?", int64(user)) + w.rows("SELECT COUNT(*) FROM deliveries"); n != 0 {
		t.Errorf("%d notifications to a service account", n)
	}
	for _, path := range []string{"/projects/" + id(w.project) + "/members.csv", "/users.csv"} {
		if table := w.send(w.admin, "GET", path, ""); table.status != 200 || strings.Contains(table.raw, "nightly") || !strings.Contains(table.raw, "ann@example.org") {
			t.Errorf("%s: %d %s", path, table.status, table.raw)
		}
	}
	w.want(200, w.admin, "PUT", person, `{"name":"nightly","admin":false,"disabled":true}`)
	w.want(401, secret, "GET", "/me", "")
}

// A manager cannot act with more permissions by way of a service account.
func TestTokensOfServiceAccountsGrantNothing(t *testing.T) {
	w := newWorld(t)
	project := "/projects/" + id(w.project)
	chief := w.create(w.admin, project+"/roles", `{"name":"chief","permission":"owner","limit":`+slice+`}`)
	w.want(403, w.manager, "POST", project+"/service-accounts", `{"name":"chief","role_id":`+id(chief)+`}`)
	made := w.want(201, w.admin, "POST", project+"/service-accounts", `{"name":"chief","role_id":`+id(chief)+`}`)
	tokens := made.header.Get("Location")[len(apiPrefix):] + "/tokens"
	w.want(403, w.manager, "POST", tokens, `{"name":"x"}`)
	token := w.want(201, w.admin, "POST", tokens, `{"name":"x"}`)
	w.want(403, w.manager, "DELETE", token.header.Get("Location")[len(apiPrefix):], "")
	full := w.create(w.admin, project+"/roles", `{"name":"large","permission":"member","limit":`+plenty+`}`)
	w.want(409, w.admin, "POST", project+"/service-accounts", `{"name":"large","role_id":`+id(full)+`}`)
}

func TestServiceAccountsByForm(t *testing.T) {
	w := newWorld(t)
	manager, _ := w.staff()
	w.runner = w.create(w.admin, "/projects/"+id(w.project)+"/roles", `{"name":"runner","permission":"member","limit":`+slice+`}`)
	at := "/projects/" + id(w.project)
	manager.shows(manager.page(200, "GET", at), "Add service account")
	manager.page(200, "GET", at+"/service-accounts/new")
	manager.shows(manager.page(422, "POST", at+"/service-accounts", "name", "Not this", "role_id", id(w.role)), "lower-case letters")
	manager.page(303, "POST", at+"/service-accounts", "name", "nightly", "role_id", id(w.runner))
	member := w.rows("SELECT MAX(id) FROM members")
	tokens := fmt.Sprintf("%s/members/%d/tokens", at, member)
	manager.shows(manager.page(201, "POST", tokens, "name", "ci", "scope_launch", "1", "lifetime", "24h"), "weir_", "Access tokens of nightly", "!scope_admin")
	manager.shows(manager.page(200, "GET", at), "service account")
	token := w.rows("SELECT MAX(id) FROM access_tokens")
	manager.page(200, "GET", fmt.Sprintf("%s/%d/delete", tokens, token))
	manager.page(303, "POST", fmt.Sprintf("%s/%d/delete", tokens, token))
	if n := w.rows("SELECT COUNT(*) FROM access_tokens WHERE id = ?", token); n != 0 {
		t.Error("the token is still there")
	}
}
