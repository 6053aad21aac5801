package e2e

import (
	"fmt"
	"testing"
	"time"
)

// told is how many notifications of a kind a member has.
func (m member) told(kind string) (n int) {
	m.s.t.Helper()
	for _, one := range list[struct{ Kind string }](m.api, "/notifications") {
		if one.Kind == kind {
			n++
		}
	}
	return n
}

// A server that dies while it tells people of an end leaves it to the next:
// they are told, and once.
func TestKilledWhileTellingOfAnEnd(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		team := s.team("leavers", share, "ada", "bob")
		ends := func(m member) int {
			until := time.Now().UTC().Add(20 * time.Hour)
			return s.api(s.admin()).call("PUT", fmt.Sprintf("/projects/%d/members/%d", team.Project, m.ID), map[string]any{"role_id": team.Role, "until": until}, nil)
		}
		told := func(m member) {
			t.Helper()
			eventually(t, again, func() string {
				if n := m.told("deadline.ending"); n != 1 {
					return fmt.Sprintf("%s has %d notifications of the end", m.Name, n)
				}
				return ""
			})
		}
		ada, bob := team.Members[0], team.Members[1]
		s.stop()
		s.start("WEIR_FAILPOINT=period.told")
		ends(ada)
		if code := s.wait(); code != -1 {
			t.Fatalf("the server ended with exit code %d and not at the failpoint", code)
		}
		s.start()
		told(ada)
		s.stop()
		s.start()
		if status := ends(bob); status != 200 {
			t.Fatalf("bob's deadline: %d", status)
		}
		told(bob) // so this server has looked
		if n := ada.told("deadline.ending"); n != 1 {
			t.Errorf("ada was told %d times", n)
		}
	})
}
