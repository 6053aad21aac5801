package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// cniPlugins is Debian's directory of CNI plugins.
const cniPlugins = "/usr/lib/cni"

// network is the node's bridge, as recorded for Stop.
type network struct {
	Bridge string       `json:"bridge"` // also the name of the CNI network
	Subnet netip.Prefix `json:"subnet"`
}

// host is the address of the node and the bridge.
func (n network) host() netip.Addr { return n.Subnet.Addr().Next() }

// masquerade is the iptables rule that connects pods to the network.
func (n network) masquerade(action string) []string {
	return []string{"-w", "-t", "nat", action, "POSTROUTING", "-s", n.Subnet.String(), "!", "-d", n.Subnet.String(),
		"-m", "comment", "--comment", n.Bridge, "-j", "MASQUERADE"}
}

// removeNetwork removes what makeNetwork has created, also after a partial
// failure.
func removeNetwork(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "network"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var n network
	if err := json.Unmarshal(text, &n); err != nil || !strings.HasPrefix(n.Bridge, "weir") {
		return fmt.Errorf("%s does not describe a network of a cluster: %w", filepath.Join(dir, "network"), err)
	}
	for command("iptables", n.masquerade("-C")...) == nil {
		if err := command("iptables", n.masquerade("-D")...); err != nil {
			return err
		}
	}
	if _, err := net.InterfaceByName(n.Bridge); err == nil {
		return command("ip", "link", "delete", n.Bridge)
	}
	return nil
}

// usedAddresses lists the networks of this machine.
func usedAddresses() (used []netip.Prefix, err error) {
	addrs, err := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, p)
		}
	}
	return used, err
}

// freeSubnet returns the first unused /24 of 10.88.0.0/16, beginning with
// first.
func freeSubnet(first byte, used []netip.Prefix) (netip.Prefix, error) {
	for i := range 256 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88, first + byte(i), 0}), 24)
		if !slices.ContainsFunc(used, p.Overlaps) {
			return p, nil
		}
	}
	return netip.Prefix{}, errors.New("this machine uses all of 10.88.0.0/16: there is no network left for pods")
}

// command runs a system program; its error contains the output.
func command(name string, args ...string) error {
	cmd := exec.Command(findProgram(name), args...)
	cmd.Env = []string{"PATH=" + systemPath}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
