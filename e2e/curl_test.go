package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// curl runs the real curl, as in the documentation's examples.
type curl struct {
	t     testing.TB
	jar   string // file of cookies
	token string // Authorization, unless empty
}

func newCurl(t testing.TB) curl {
	t.Helper()
	return curl{t: t, jar: filepath.Join(t.TempDir(), "cookies")}
}

func (c curl) as(token string) curl { return curl{c.t, c.jar, token} }

// reply is what curl got; redirects are not followed.
type reply struct {
	status int
	header http.Header
	body   string
}

func (c curl) do(args ...string) reply {
	c.t.Helper()
	dir := c.t.TempDir()
	head, body := filepath.Join(dir, "head"), filepath.Join(dir, "body")
	all := []string{"--silent", "--show-error", "--max-time", "60", "--dump-header", head, "--output", body, "--cookie", c.jar, "--cookie-jar", c.jar}
	if c.token != "" {
		all = append(all, "--header", "Authorization: Bearer "+c.token)
	}
	cmd := exec.Command("curl", append(all, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("curl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	r := readHead(c.t, head)
	b, err := os.ReadFile(body)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	r.body = string(b)
	return r
}

func readHead(t testing.TB, file string) reply {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := textproto.NewReader(bufio.NewReader(f))
	line, err := in.ReadLine()
	if err != nil {
		t.Fatal(err)
	}
	header, err := in.ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(line)
	if len(fields) < 2 {
		t.Fatalf("curl got %q", line)
	}
	status, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatalf("curl got %q", line)
	}
	return reply{status: status, header: http.Header(header)}
}

// call sends JSON, unless it is empty, and reads the answer into out, unless
// that is nil. The status must be the one wanted.
func (c curl) call(want int, method, address, body string, out any) reply {
	c.t.Helper()
	args := []string{"--request", method}
	if body != "" {
		args = append(args, "--header", "Content-Type: application/json", "--data", body)
	}
	r := c.do(append(args, address)...)
	if r.status != want {
		c.t.Fatalf("%s %s answers %d, not %d: %s", method, address, r.status, want, r.body)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(r.body), out); err != nil {
			c.t.Fatalf("%s %s answers %s: %v", method, address, r.body, err)
		}
	}
	return r
}

// cookies reads those of a host from curl's file.
func (c curl) cookies(host string) (found []*http.Cookie) {
	c.t.Helper()
	b, err := os.ReadFile(c.jar)
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "#HttpOnly_"), "\t")
		if len(fields) == 7 && fields[0] == host {
			found = append(found, &http.Cookie{Name: fields[5], Value: fields[6], Path: fields[2]})
		}
	}
	if len(found) == 0 {
		c.t.Fatalf("no cookies of %s in\n%s", host, b)
	}
	return found
}
