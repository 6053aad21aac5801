package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/storage/rules"
)

// sandboxUsers are the users of workspaces in the network of this machine. Their connections to the
// portal are refused: a page that a notebook serves at another port of localhost gets the cookies
// of who opens it there, and could use them.
type sandboxUsers struct {
	own int64 // of workspaces of members without an ID of their own
	ids rules.IDRange
}

// sandboxUsers returns the users whose connections are refused; nil if none are, as where workspaces have
// networks of their own, or this server has the user of their programs.
func (p *portal) sandboxUsers() *sandboxUsers {
	r, ok := p.runtime.(interface{ SharesNetwork() bool })
	if !ok || !r.SharesNetwork() || os.Geteuid() != 0 {
		return nil
	}
	return &sandboxUsers{own: int64(p.cfg.SandboxUID), ids: p.idRange()}
}

// opened reports whether a program of theirs has opened a connection. One of this machine that is
// closed already counts as theirs: nobody waits for a response.
func (u *sandboxUsers) opened(conn net.Conn) bool {
	local, err1 := netip.ParseAddrPort(conn.LocalAddr().String())
	remote, err2 := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err1 != nil || err2 != nil || !ofThisMachine(remote.Addr()) {
		return false
	}
	user, known := userOf(remote, local)
	return !known || user == u.own || u.ids.Contains(user)
}

// ofThisMachine reports whether an address is one of this machine, or cannot be told from one.
func ofThisMachine(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	addresses, err := net.InterfaceAddrs()
	return err != nil || a.IsLoopback() || slices.ContainsFunc(addresses, func(own net.Addr) bool {
		p, err := netip.ParsePrefix(own.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// userOf returns the user of the socket of this machine with a local and a remote address. It is
// not known of one that no program has open.
//
// The tables are those of proc_net(5): the address in hexadecimal digits in second and third place, the
// user in the eighth and the inode in the tenth.
func userOf(local, remote netip.AddrPort) (user int64, known bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(table) // without IPv6 there is only one
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[9] == "0" || f[1] != inTable(table, local) || f[2] != inTable(table, remote) {
				continue
			}
			user, err := strconv.ParseInt(f[7], 10, 64)
			return user, err == nil
		}
	}
	return 0, false
}

// inTable is an address as the table has it: 32 bits at a time, in the order of this machine.
func inTable(table string, a netip.AddrPort) string {
	addr := a.Addr().Unmap().WithZone("")
	ip := addr.AsSlice()
	if strings.HasSuffix(table, "6") {
		mapped := addr.As16()
		ip = mapped[:]
	}
	var text strings.Builder
	for ; len(ip) > 0; ip = ip[4:] {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(ip))
	}
	return fmt.Sprintf("%s:%04X", text.String(), a.Port())
}
