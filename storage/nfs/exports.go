package nfs

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	"slices"
	"strings"

	"weir/storage/rules"
)

// Config configures the server.
type Config struct {
	Root    string         // the shared directories on this machine
	Dir     string         // of Ganesha's configuration and state
	Listen  netip.AddrPort // one TCP port, for NFSv4
	Path    string         // of the exports as clients mount them, such as /weir
	Nodes   []netip.Prefix // clients of the exports of projects and public directories
	Servers []netip.Prefix // clients of an export of everything, at Path-all
}

// Export is a directory that clients can mount.
type Export struct {
	ID       uint16 // part of the clients' handles: the same after a restart
	Dir      string // on this machine
	Path     string // as clients mount it
	ReadOnly bool
	Root     bool   // clients' root is root; otherwise it is the user 65534
	Group    uint32 // of clients' root
	Clients  []netip.Prefix
}

// Project is a project with a directory.
type Project struct {
	ID    int64  // at most MaxProject
	Group uint32 // of the directory. The kubelet mounts parts of it as root, so it must get through.
}

const nobody = 65534

// Export ids. Those of projects are projectIDs + the id of the project.
const (
	everythingID = 1
	publicIDs    = 2
	projectIDs   = 100
)

// MaxProject is the highest id of a project that can be exported.
const MaxProject = math.MaxUint16 - projectIDs

// Exports returns the exports for projects.
func (c Config) Exports(projects []Project) []Export {
	var all []Export
	if len(c.Servers) > 0 {
		all = append(all, Export{ID: everythingID, Dir: c.Root, Path: c.Path + "-all", Root: true, Clients: c.Servers})
	}
	for i, dir := range rules.PublicDirs() {
		all = append(all, Export{ID: uint16(publicIDs + i), Dir: path.Join(c.Root, dir), Path: c.Path + dir, ReadOnly: true, Group: nobody,
			Clients: c.Nodes})
	}
	for _, p := range projects {
		dir := rules.ProjectDir(p.ID)
		all = append(all, Export{ID: uint16(projectIDs + p.ID), Dir: path.Join(c.Root, dir), Path: c.Path + dir, Group: p.Group,
			Clients: c.Nodes})
	}
	return all
}

// Check returns what is wrong with a configuration.
func (c Config) Check() error {
	var wrong []error
	for name, p := range map[string]string{"the shared directory": c.Root, "the state directory": c.Dir, "the path of the exports": c.Path} {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsFunc(p,
			func(r rune) bool { return r < ' ' || strings.ContainsRune(`"'\#$%`, r) }) {
			wrong = append(wrong, fmt.Errorf("%s %q is not an absolute path without quotes and special characters", name, p))
		}
	}
	for _, p := range append(slices.Clone(c.Nodes), c.Servers...) {
		if p.Addr().Is6() && !p.IsSingleIP() && p.Bits() > maxBits6 {
			wrong = append(wrong, fmt.Errorf("the network %s is too small for NFS-Ganesha: give the addresses", p))
		}
	}
	if len(c.Nodes) == 0 {
		wrong = append(wrong, errors.New("the addresses of the nodes are missing: nobody else may mount the shared directories"))
	}
	return errors.Join(wrong...)
}

// maxBits6 is the longest prefix of an IPv6 network that Ganesha's parser takes.
const maxBits6 = 99

// clientText is an address or a network as Ganesha's parser takes it: without the length
// of an address, and without “::/” in networks.
func clientText(p netip.Prefix) string {
	switch p = p.Masked(); {
	case p.IsSingleIP():
		return p.Addr().String()
	case p.Addr().Is6():
		return fmt.Sprintf("%s/%d", p.Addr().StringExpanded(), p.Bits())
	}
	return p.String()
}

// Text returns Ganesha's configuration.
func (c Config) Text(exports []Export) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Written by “weir nfs”.
NFS_CORE_PARAM {
	NFS_Port = %d;
	Bind_addr = %s;
	Protocols = 4;
	Enable_UDP = false;
	Enable_NLM = false;
	Enable_RQUOTA = false;
}
NFSV4 {
	RecoveryBackend = fs;
	RecoveryRoot = "%s/recovery";
	Lease_Lifetime = 20;
	Grace_Period = 30;
	Only_Numeric_Owners = true;
}
# Attributes expire at once: servers change files beside it.
EXPORT_DEFAULTS { Access_Type = None; Protocols = 4; Transports = TCP; SecType = sys; Squash = root_squash; Attr_Expiration_Time = 0; }
LOG { COMPONENTS { DBUS = FATAL; DISPATCH = FATAL; NFS_CB = FATAL; TIRPC = FATAL; } } # without D-Bus, rpcbind and Kerberos
`, c.Listen.Port(), c.Listen.Addr().Unmap(), c.Dir)
	for _, e := range exports {
		b.WriteString(e.text())
	}
	return b.String()
}

func (e Export) text() string {
	access, squash := "RW", fmt.Sprintf("root_squash; Anonymous_Uid = %d; Anonymous_Gid = %d", nobody, e.Group)
	if e.ReadOnly {
		access = "RO"
	}
	if e.Root {
		squash = "no_root_squash"
	}
	clients := make([]string, len(e.Clients))
	for i, p := range e.Clients {
		clients[i] = clientText(p)
	}
	return fmt.Sprintf(`EXPORT {
	Export_Id = %d;
	Path = "%s";
	Pseudo = "%s";
	CLIENT { Clients = %s; Access_Type = %s; Squash = %s; Protocols = 4; }
	FSAL { Name = VFS; }
}
`, e.ID, e.Dir, e.Path, strings.Join(clients, ", "), access, squash)
}
