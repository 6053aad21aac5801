package local

import (
	"net"
	"sync"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"
)

// Parts of the files that this process can have open, for the connections of the programs in workspaces.
const (
	partOfWorkspace = 256
	partOfAll       = 16 // workspaces together
)

// apiConnections bounds the connections of the programs in workspaces, so that they leave files for
// everything else.
type apiConnections struct {
	most int           // of a workspace
	all  chan struct{} // has an entry for each open one
}

func newAPIConnections() (c apiConnections, err error) {
	var files unix.Rlimit
	err = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	const most = 1 << 20 // also where there is no limit
	c.most = int(min(max(files.Cur/partOfWorkspace, 4), 64))
	c.all = make(chan struct{}, min(max(files.Cur, 64), most)/partOfAll)
	return c, err
}

// bound returns a listener of a workspace: its connections beyond the bound of one wait, and those beyond that
// of all are closed at once.
func (c apiConnections) bound(l net.Listener) net.Listener {
	return netutil.LimitListener(apiListener{l, c.all}, c.most)
}

type apiListener struct {
	net.Listener
	all chan struct{}
}

func (l apiListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.all <- struct{}{}:
			return &apiConnection{Conn: conn, all: l.all}, nil
		default:
			_ = conn.Close() // refused
		}
	}
}

type apiConnection struct {
	net.Conn
	all   chan struct{}
	close sync.Once
}

func (c *apiConnection) Close() error {
	c.close.Do(func() { <-c.all })
	return c.Conn.Close()
}
