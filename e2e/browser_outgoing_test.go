package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// connects prints whether hosts are reached, or why not. What lies outside of this machine may do anything.
const connects = `
import socket
for host in ("192.0.2.1", "198.18.0.1"):
    try: socket.create_connection((host, 9), 1)
    except OSError as e: print(host, type(e).__name__)
    else: print(host, "reached")
try: socket.getaddrinfo("example.org", 80)
except OSError as e: print("example.org", type(e).__name__)
`

// An administrator restricts the connections of a project. Its members see that, and what they
// start then connects to nothing else.
func TestOutgoingConnectionsInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{})
	team := s.team("records", share.times(2), "ada")
	ada := team.Members[0]
	at := fmt.Sprintf("/projects/%d", team.Project)
	p := chromium.person(t, s.url)
	admin := p.tab()
	admin.signIn("operator@example.org", password)
	admin.goTo(at + "/edit")
	allow := func(access, hosts string) {
		eval[bool](admin, fmt.Sprintf(`%s.value = %q; %s.value = %q; true`, labelled("Allowed"), access, labelled("Hosts"), hosts))
		admin.loads(func() { admin.press("Save") })
	}
	allow("listed", "198.18.0.0/15\n10.0.0.300")
	admin.sees(`"10.0.0.300" is not a name, an IPv4 address or an IPv4 network such as 192.0.2.0/24`)
	admin.shoot("outgoing-refused")
	if typed := eval[string](admin, labelled("Hosts")+".value"); typed != "198.18.0.0/15\n10.0.0.300" {
		t.Errorf("what was typed has become %q", typed)
	}
	allow("listed", "198.18.0.0/15")
	admin.at(at)

	member := chromium.person(t, s.url).tab()
	member.signIn(ada.Email, password)
	member.goTo(at)
	member.sees("What starts in this project connects only to these machines: 198.18.0.0/15.")
	member.shoot("outgoing-project")
	c := ada.runs(team.Project, nil, "/usr/bin/python3", "-c", connects)
	c.exits(0)
	out := c.out.String()
	if !strings.Contains(out, "192.0.2.1 PermissionError\n") || !strings.Contains(out, "198.18.0.1 ") || strings.Contains(out, "198.18.0.1 PermissionError") ||
		!strings.Contains(out, "example.org gaierror\n") {
		t.Errorf("it printed %q", out)
	}
	admin.goTo(at + "/edit")
	allow("none", "")
	admin.at(at)
	member.sees("What starts in this project connects to no other machine.")
	c = ada.runs(team.Project, nil, "/usr/bin/python3", "-c", connects)
	c.exits(0)
	if out := c.out.String(); !strings.Contains(out, "198.18.0.1 PermissionError\n") {
		t.Errorf("it printed %q", out)
	}
	p.watch.clean()
}
