package e2e

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// A flood of connections takes no descriptor from the server's own work: other visitors are
// served, and the notebook that runs is neither lost nor started again.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:2", files: 256})
	team := s.sharing("ada")
	ada := team.Members[0]
	w := ada.running(team.Project, "nb")
	nb := ada.open(w.ID)
	process := s.jupyter(w.ID)
	flood := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	for round := range 10 {
		var open []net.Conn
		for range 300 {
			conn, err := flood.DialContext(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(s.port))
			if err != nil {
				break // the backlog is full
			}
			open = append(open, conn)
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Unfinished: ") // it may be closed already
		}
		eventually(t, patience, func() string {
			if status, _, err := ada.raw("GET", workspacePath(w.ID), nil); err != nil || status != 200 {
				return fmt.Sprintf("round %d with %d connections: %d, %v", round, len(open), status, err)
			}
			return ""
		})
		if got := nb.execute("print(1)"); got != "1\n" {
			t.Errorf("round %d: the notebook answers %q", round, got)
		}
		for _, conn := range open {
			conn.Close()
		}
	}
	if now := ada.workspace(w.ID); now.State != "running" || s.jupyter(w.ID) != process {
		t.Errorf("the workspace is %s, by another process: %t", now.State, s.jupyter(w.ID) != process)
	}
	if strings.Contains(s.log.String(), "too many open files") {
		t.Error("the server ran out of descriptors")
	}
}
