package config

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeService has the keys that deploy/compose.yaml uses: others are misspelt.
type composeService struct {
	Image       string
	Build       struct{ Context string }
	Restart     string
	Ports       []string // host address:host port:container port
	Volumes     []string // name:path
	Environment map[string]string
	SecurityOpt []string                              `yaml:"security_opt"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct {
		Test        []string
		Interval    string
		StartPeriod string `yaml:"start_period"`
		Retries     int
	}
}

type composeFile struct {
	Name     string
	Services map[string]composeService
	Volumes  map[string]struct{}
}

func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readCompose(t *testing.T) (c composeFile) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(readRoot(t, "deploy/compose.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// imageEnv are the variables that the Dockerfile sets.
func imageEnv(t *testing.T) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(readRoot(t, "Dockerfile")) {
		if list, ok := strings.CutPrefix(line, "ENV "); ok {
			for _, pair := range strings.Fields(list) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
		}
	}
	return env
}

// The server understands what the Compose file tells it, and is reached where it listens.
func TestComposeServer(t *testing.T) {
	weir := readCompose(t).Services["weir"]
	env := imageEnv(t)
	for name, text := range weir.Environment {
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.env() == name && !s.notServe }) {
			t.Errorf("“weir serve” has no setting %s", name)
		}
		env[name] = strings.ReplaceAll(text, "${POSTGRES_PASSWORD:?}", "secret")
	}
	c, err := load(t, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	port := strings.Split(weir.Ports[0], ":")
	dockerfile := readRoot(t, "Dockerfile")
	if c.Listen != ":"+port[2] || !regexp.MustCompile(`(?m)^EXPOSE .*\b`+port[2]+`\b`).MatchString(dockerfile) {
		t.Errorf("it listens on %s; ports: %v", c.Listen, weir.Ports)
	}
	if at, err := url.Parse(c.ExternalURL); err != nil || at.Port() != port[1] {
		t.Errorf("it is reached at port %s, and its URL is %s", port[1], c.ExternalURL)
	}
	if !slices.Contains(weir.Volumes, "weir:"+c.DataDir) {
		t.Errorf("%s is no volume: %v", c.DataDir, weir.Volumes)
	}
	if !strings.Contains(dockerfile, `CMD ["serve"]`) || weir.Build.Context != ".." {
		t.Errorf("the image is built in %q, and does not run “weir serve”", weir.Build.Context)
	}
}

// What services name of each other is there.
func TestComposeServices(t *testing.T) {
	c := readCompose(t)
	weir, database := c.Services["weir"], c.Services["database"]
	at, err := url.Parse(strings.ReplaceAll(weir.Environment["WEIR_DATABASE_URL"], "${POSTGRES_PASSWORD:?}", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	user := database.Environment["POSTGRES_USER"]
	if at.Hostname() != "database" || at.User.Username() != user || at.Path != "/"+user || !slices.Contains(database.Healthcheck.Test, user) {
		t.Errorf("the database of %s is at %s", user, at)
	}
	if strings.Count(readRoot(t, "deploy/compose.yaml"), "${POSTGRES_PASSWORD:?}") != 2 {
		t.Error("the server and the database do not have the same password")
	}
	for name, s := range c.Services {
		for other, when := range s.DependsOn {
			if when.Condition != "service_healthy" || len(c.Services[other].Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s, which does not say that it is healthy", name, other)
			}
		}
		for _, volume := range s.Volumes {
			named, _, _ := strings.Cut(volume, ":")
			if _, ok := c.Volumes[named]; !ok {
				t.Errorf("there is no volume %s", named)
			}
		}
		if s.Image == "" || s.Restart == "" || len(s.Healthcheck.Test) == 0 || s.Healthcheck.Interval == "" {
			t.Errorf("%s lacks a key: %+v", name, s)
		}
	}
}

// The health check runs with what the image has, and follows /readyz.
func TestComposeHealthCheck(t *testing.T) {
	test := readCompose(t).Services["weir"].Healthcheck.Test
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Host != "localhost" {
			t.Errorf("it asks %s for %s", r.Host, r.URL)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	command := strings.ReplaceAll(test[len(test)-1], "/8080", "/"+port)
	if test[0] != "CMD" || !strings.Contains(command, port) {
		t.Fatalf("%q", test)
	}
	healthy := func() bool {
		return exec.CommandContext(t.Context(), test[1], test[2], command).Run() == nil
	}
	if !healthy() {
		t.Error("a ready server is not healthy")
	}
	status = http.StatusServiceUnavailable
	if healthy() {
		t.Error("a server that is not ready is healthy")
	}
	server.Close()
	if healthy() {
		t.Error("a server that does not run is healthy")
	}
}

// The image is built of all packages of the program.
func TestImageHasItsSources(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "weir/cmd/weir")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Fields(readRoot(t, ".dockerignore"))
	for line := range bytes.Lines(out) {
		if name, ours := strings.CutPrefix(strings.TrimSpace(string(line)), "weir/"); ours {
			if folder, _, _ := strings.Cut(name, "/"); slices.Contains(ignored, folder) {
				t.Errorf(".dockerignore leaves out %s", name)
			}
		}
	}
}
