package handlers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// personas are who asks: nobody, somebody without a project, those with each
// standard role in the project vision, and the two platform roles.
var personas = []string{"nobody", "stranger", "viewer", "member", "manager", "owner", "auditor", "administrator"}

// cast is the address of each persona, and of the others on the scene.
var cast = map[string]string{"stranger": "eve@example.org", "viewer": "vera@example.org", "member": "ann@example.org", "manager": "boss@example.org",
	"owner": "olga@example.org", "auditor": "audrey@example.org", "administrator": "root@example.org"}

// scene is a world in which each kind of thing is there twice: as one's own,
// or of the project vision, and as a foreign one, of the project secret. It is
// set up once, and played on copies of its database.
type scene struct {
	*world
	file   string            // the database as it was set up
	tokens map[string]string // by persona
	ids    map[string]int64  // "vision project", "secret workspace", "ann notice"

	limited map[string]string // tokens with one scope, by persona and scope: "owner read"
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{tokens: map[string]string{}, ids: map[string]int64{}, file: filepath.Join(t.TempDir(), "scene.db")}
	store := storetest.Open(t, "sqlite")
	s.world = newWorldOn(t, store, func(*Config) {})
	s.tokens = map[string]string{"administrator": s.admin, "manager": s.manager, "member": s.member, "stranger": s.stranger}
	s.tokens["viewer"], s.tokens["owner"], s.tokens["auditor"] = s.account(cast["viewer"], false), s.account(cast["owner"], false), s.account(cast["auditor"], false)
	s.furnishVision()
	s.furnishSecret()
	s.furnishPlatform()
	for _, email := range append([]string{"zed@example.org"}, s.addresses()...) {
		s.furnishPerson(email)
	}
	s.limited = s.limit(s.app)
	if _, err := must(store.SQL())(t).Exec("VACUUM INTO ?", s.file); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) addresses() (list []string) {
	for _, email := range cast {
		list = append(list, email)
	}
	return list
}

// fill makes a role with one member in it.
func (s *scene) fill(project int64, name, permission, email string) (role, member int64) {
	at := "/projects/" + id(project)
	role = s.create(s.admin, at+"/roles", `{"name":"`+name+`","permission":"`+permission+`","limit":`+slice+`}`)
	return role, s.create(s.admin, at+"/members", `{"email":"`+email+`","role_id":`+id(role)+`}`)
}

func (s *scene) furnishVision() {
	s.ids["vision project"] = s.project
	at := "/projects/" + id(s.project)
	s.fill(s.project, "guest", "viewer", cast["viewer"])
	s.fill(s.project, "chief", "owner", cast["owner"])
	s.account("tom@example.org", false)
	_, s.ids["vision member"] = s.fill(s.project, "helper", "member", "tom@example.org")
	s.account("lee@example.org", false)
	_, s.ids["vision leaver"] = s.fill(s.project, "passer", "member", "lee@example.org")
	s.want(204, s.admin, "DELETE", at+"/members/"+id(s.ids["vision leaver"]), "")
	s.ids["vision role"] = s.create(s.admin, at+"/roles", `{"name":"spare","permission":"member","limit":`+slice+`}`)
	s.ids["vision workspace"] = s.create(s.member, "/workspaces", `{"project_id":`+id(s.project)+`,"environment_id":`+id(s.environment)+`}`)
	s.ids["vision reservation"] = s.create(s.member, "/reservations", reserve(s.project))
	s.ids["vision run"] = s.addRun(s.project, "ann@example.org", models.RunRunning)
	s.ids["vision preset"] = s.addSplitPreset(s.project)
	s.ids["vision deployment"] = s.addDeployment(s.project, "ann@example.org", models.TaskTextGeneration)
	s.ids["vision service"], s.ids["vision servicetoken"] = s.serve(s.project, s.ids["vision role"])
	s.ids["vision invitation"] = s.invite(s.project, s.ids["vision role"])
	s.ids["vision request"] = s.create(s.member, "/requests", `{"reason":"more","role":{"project_id":`+id(s.project)+`,"name":"expert","permission":"member","limit":`+slice+`}}`)
}

// reserve asks for a small share in a project.
func reserve(project int64) string {
	return strings.ReplaceAll(reserveForm, "$project", id(project))
}

// serve adds a service account with a token.
func (s *scene) serve(project, role int64) (member, token int64) {
	at := "/projects/" + id(project)
	member = int64(s.want(201, s.admin, "POST", at+"/service-accounts", `{"name":"robot","role_id":`+id(role)+`}`).body["id"].(float64))
	return member, s.create(s.admin, at+"/members/"+id(member)+"/tokens", `{"name":"ci"}`)
}

// invite invites somebody to a project.
func (s *scene) invite(project, role int64) int64 {
	list := s.want(201, s.admin, "POST", "/projects/"+id(project)+"/invitations", `{"emails":["guest@example.org"],"role_id":`+id(role)+`}`).body["items"].([]any)
	return int64(list[0].(map[string]any)["id"].(float64))
}

func (s *scene) furnishSecret() {
	zed := s.account("zed@example.org", false)
	s.account("yan@example.org", false)
	p := s.create(s.admin, "/projects", `{"name":"secret","quota":`+plenty+beyond+`}`)
	s.ids["secret project"] = p
	s.ids["secret role"], s.ids["secret member"] = s.fill(p, "chief", "owner", "zed@example.org")
	s.account("xu@example.org", false)
	_, s.ids["secret leaver"] = s.fill(p, "passer", "member", "xu@example.org")
	s.want(204, s.admin, "DELETE", "/projects/"+id(p)+"/members/"+id(s.ids["secret leaver"]), "")
	s.ids["secret workspace"] = s.create(zed, "/workspaces", `{"project_id":`+id(p)+`,"environment_id":`+id(s.environment)+`}`)
	s.ids["secret reservation"] = s.create(zed, "/reservations", reserve(p))
	s.ids["secret run"] = s.addRun(p, "zed@example.org", models.RunRunning)
	s.ids["secret preset"] = s.addSplitPreset(p)
	s.ids["secret deployment"] = s.addDeployment(p, "zed@example.org", models.TaskTextGeneration)
	s.ids["secret service"], s.ids["secret servicetoken"] = s.serve(p, s.ids["secret role"])
	s.ids["secret invitation"] = s.invite(p, s.ids["secret role"])
	s.ids["secret request"] = s.create(zed, "/requests", `{"reason":"more","role":{"project_id":`+id(p)+`,"name":"expert","permission":"member","limit":`+slice+`}}`)
}

// furnishPlatform makes what belongs to no project. Ann owns the provider
// "here", zed the provider "there".
func (s *scene) furnishPlatform() {
	s.ids["any environment"], s.ids["any department"] = s.environment, s.create(s.admin, "/departments", `{"name":"optics"}`)
	s.ids["any curator"] = s.create(s.admin, "/curators", `{"directory":"/public_dataset","email":"root@example.org"}`)
	s.ids["any webhook"] = s.create(s.admin, "/webhooks", `{"name":"hook","url":"https://example.org/hook","enabled":true}`)
	for _, statement := range []string{
		"UPDATE users SET auditor = TRUE WHERE email = 'audrey@example.org'",
		"UPDATE providers SET owner_id = (SELECT id FROM users WHERE email = 'ann@example.org') WHERE name = 'here'",
		`INSERT INTO providers (name, state, owner_id, seen_at, created_at)
			SELECT 'there', 'online', (SELECT id FROM users WHERE email = 'zed@example.org'), seen_at, created_at FROM providers WHERE name = 'here'`,
		`INSERT INTO agents (provider_id, key_hash, serial, issued_at, expires_at, created_at)
			SELECT id, 'k', 's', created_at, '2999-01-01 00:00:00+00:00', created_at FROM providers WHERE name = 'there'`,
		`INSERT INTO devices (provider_id, uuid, number, minor, model, memory_mib, created_at)
			SELECT id, 'GPU-there', 0, 0, 'NVIDIA H200', 143771, created_at FROM providers WHERE name = 'there'`,
		`INSERT INTO deliveries (key, webhook_id, receiver, kind, state, queued_at, next_at, created_at)
			SELECT 'k', id, 'webhook:1', 'k', 'failed', created_at, created_at, created_at FROM webhooks`,
		`INSERT INTO identities (user_id, issuer, subject, email, created_at, seen_at)
			SELECT id, 'https://id', 's', email, created_at, created_at FROM users WHERE email = 'tom@example.org'`,
	} {
		if _, err := must(s.store.SQL())(s).Exec(statement); err != nil {
			s.Fatal(err)
		}
	}
	for name, query := range map[string]string{
		"any delivery": "SELECT MAX(id) FROM deliveries", "any identity": "SELECT MAX(id) FROM identities",
		"own provider": "SELECT id FROM providers WHERE name = 'here'", "foreign provider": "SELECT id FROM providers WHERE name = 'there'",
		"own device":     "SELECT MIN(devices.id) FROM devices JOIN providers ON providers.id = provider_id WHERE providers.name = 'here'",
		"foreign device": "SELECT MIN(devices.id) FROM devices JOIN providers ON providers.id = provider_id WHERE providers.name = 'there'",
	} {
		s.ids[name] = s.number(query)
	}
}

func (s *scene) number(query string, args ...any) (n int64) {
	s.Helper()
	if err := must(s.store.SQL())(s).QueryRow(query, args...).Scan(&n); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return n
}

// furnishPerson gives somebody a notice, a token, a passkey and a session to look at.
func (s *scene) furnishPerson(email string) {
	user := s.number("SELECT id FROM users WHERE email = ?", email)
	storetest.InTx(s, s.store, func(q *store.Queries) error {
		return q.Notify([]int64{user}, models.Notification{Kind: "request.approved", Text: models.Say("Your request was approved: %s.", "x"), Link: "/projects"})
	})
	s.token2(email)
	s.ids[email+" session"], s.ids[email+" passkey"] = s.signInBy(user, email)
	s.ids[email+" user"] = user
	s.ids[email+" notification"] = s.number("SELECT MAX(id) FROM notifications WHERE user_id = ?", user)
	s.ids[email+" token"] = s.number("SELECT MAX(id) FROM access_tokens WHERE user_id = ?", user)
}

// signInBy gives somebody a session and a passkey.
func (w *world) signInBy(user int64, name string) (session, passkey int64) {
	began := w.store.Now()
	s := models.Session{Token: policies.HashSecret("session of " + name), Data: []byte("x"), UserID: &user, ExpiresAt: began.AddDate(1, 0, 0), BeganAt: &began}
	s.Generation = must(w.store.Read(w.Context()).User(user))(w).SessionGeneration
	key := models.Passkey{UserID: user, Name: "phone", CredentialID: []byte(name), UserHandle: []byte(name), PublicKey: []byte("x"),
		Transports: []string{}, CeremonyAt: began, CreatedAt: began}
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		if err := q.PutSession(s); err != nil {
			return err
		}
		return q.CreatePasskey(&key)
	})
	return s.ID(), key.ID
}

// token2 is a token beside the one that a persona asks with.
func (s *scene) token2(email string) {
	s.Helper()
	if _, err := must(s.store.SQL())(s).Exec(`INSERT INTO access_tokens (user_id, name, hash, expires_at, created_at)
		SELECT id, 'second', 'hash of ' || email, '2999-01-01 00:00:00+00:00', created_at FROM users WHERE email = ?`, email); err != nil {
		s.Fatal(err)
	}
}

// play is an App on a copy of the scene, until done is called.
func (s *scene) play(t *testing.T) (app *App, done func()) {
	t.Helper()
	raw, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := store.Open(t.Context(), "", file)
	if err == nil {
		_, err = store.Join(t.Context(), true)
	}
	if err != nil {
		t.Fatal(err)
	}
	app = newApp(t, store, func(*Config) {}, s.log)
	for _, project := range []string{"vision project", "secret project"} {
		writeModels(t, filepath.Join(app.Directories.Root(), "notebook", id(s.ids[project]), "project_model"))
	}
	return app, func() {
		app.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// writeModels writes a model to a directory, and one in ONNX format below it.
func writeModels(t *testing.T, dir string) {
	t.Helper()
	err := os.MkdirAll(filepath.Join(dir, "tiny"), 0o700)
	for name, content := range map[string]string{"config.json": `{"architectures":["LlamaForCausalLM"],"hidden_size":128,"num_attention_heads":4}`,
		"model.safetensors": smallModel(2), "tiny/vision.onnx": smallONNX("Relu: x -> a")} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// told puts the scene's ids for a persona into a path or body: "$role",
// "$member" and the like.
func (s *scene) told(text, where, persona string) string {
	at, email := "vision", cast[persona]
	nested := at
	switch where {
	case "foreign":
		at, nested, email = "secret", "secret", "zed@example.org"
	case "mixed":
		nested = "secret"
	}
	side := map[string]string{"foreign": "foreign"}[where]
	if side == "" {
		side = "own"
	}
	if email == "" {
		email = "tom@example.org"
	}
	ids := map[string]int64{"$project": s.ids[at+" project"], "$robotkey": s.ids[nested+" servicetoken"], "$service": s.ids[nested+" service"], "$role": s.ids[nested+" role"], "$member": s.ids[nested+" member"], "$leaver": s.ids[nested+" leaver"],
		"$workspace": s.ids[at+" workspace"], "$request": s.ids[at+" request"], "$run": s.ids[at+" run"], "$deployment": s.ids[at+" deployment"], "$preset": s.ids[nested+" preset"], "$reservation": s.ids[at+" reservation"], "$invitation": s.ids[at+" invitation"], "$provider": s.ids[side+" provider"], "$device": s.ids[side+" device"],
		"$user": s.ids[email+" user"], "$notification": s.ids[email+" notification"], "$token": s.ids[email+" token"], "$passkey": s.ids[email+" passkey"], "$session": s.ids[email+" session"], "$tom": s.number("SELECT id FROM users WHERE email = 'tom@example.org'"),
		"$environment": s.ids["any environment"], "$department": s.ids["any department"], "$webhook": s.ids["any webhook"], "$curator": s.ids["any curator"],
		"$delivery": s.ids["any delivery"], "$identity": s.ids["any identity"]}
	for name, n := range ids {
		text = strings.ReplaceAll(text, name, id(n))
	}
	return text
}

func (s *scene) addSplitPreset(project int64) int64 {
	p := models.SplitPreset{ProjectID: project, ServiceType: "own", Split: models.SplitLayers, Combine: models.CombinePassOn, Cuts: []string{}, UserID: 1,
		CreatedAt: s.store.Now()}
	storetest.InTx(s.TB, s.store, func(q *store.Queries) error { return q.CreateSplitPreset(&p) })
	return p.ID
}
