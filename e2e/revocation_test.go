package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// follow opens an event stream of the member's server.
func (m member) follow(topic string) io.Reader {
	m.s.t.Helper()
	req, err := http.NewRequest("GET", m.s.url+"/events?topic="+topic, nil)
	if err != nil {
		m.s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.token)
	client := m.s.browser()
	client.Timeout = 2 * starting // also of the stream, which must not go on for ever
	res, err := client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		m.s.t.Fatalf("events: %v %v", res, err)
	}
	m.s.t.Cleanup(func() { res.Body.Close() })
	return res.Body
}

// A command on the database takes an account's sessions and tokens away: when
// it has returned, the server beside it has ended what was open.
func TestCommandEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		members := s.team("speech", share, "ada", "ben").Members
		adas, bens := members[0].follow("projects"), members[1].follow("projects")
		if code, _, stderr := weir(t, "another password\n", s.settings(), "admin", "reset-password", "--email", members[0].Email, "--password-stdin"); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		s.team("vision", share, "eve") // a change that followers are told of
		if told, err := io.ReadAll(adas); err != nil || strings.Contains(string(told), "data:") {
			t.Errorf("who was shut out is told %q, %v", told, err)
		}
		told := make(chan error, 1)
		go func() {
			_, err := readUntil(bens, "data: projects")
			told <- err
		}()
		select {
		case err := <-told:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(ready):
			t.Error("somebody else is not told any more")
		}
	})
}

// readUntil reads as far as some text.
func readUntil(r io.Reader, end string) (text string, err error) {
	for b := make([]byte, 1); !strings.HasSuffix(text, end); text += string(b) {
		if _, err := io.ReadFull(r, b); err != nil {
			return text, err
		}
	}
	return text, nil
}
