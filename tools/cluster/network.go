package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
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

// makeNetwork creates and records the bridge before there are pods, because
// the kubelet listens at its address.
func (c *Cluster) makeNetwork() error {
	sum := sha256.Sum256([]byte(c.dir))
	n := network{Bridge: "weir" + hex.EncodeToString(sum[:4])}
	used, err := usedAddresses()
	if err != nil {
		return err
	}
	if n.Subnet, err = freeSubnet(sum[0], used); err != nil {
		return err
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("network"), text, 0o644); err != nil {
		return err
	}
	if err := errors.Join(
		command("ip", "link", "add", n.Bridge, "type", "bridge"),
		command("ip", "address", "add", fmt.Sprintf("%s/%d", n.host(), n.Subnet.Bits()), "dev", n.Bridge),
		command("ip", "link", "set", n.Bridge, "up")); err != nil {
		return err
	}
	if err := command("iptables", n.masquerade("-A")...); err != nil {
		c.log("pods reach this machine but nothing beyond it: %v", err)
	}
	c.net = n
	return c.writeCNI()
}

// masquerade is the iptables rule that connects pods to the network.
func (n network) masquerade(action string) []string {
	return []string{"-w", "-t", "nat", action, "POSTROUTING", "-s", n.Subnet.String(), "!", "-d", n.Subnet.String(),
		"-m", "comment", "--comment", n.Bridge, "-j", "MASQUERADE"}
}

func (c *Cluster) writeCNI() error {
	text := fmt.Sprintf(`{
  "cniVersion": "0.4.0", "name": %[1]q,
  "plugins": [{
    "type": "bridge", "bridge": %[1]q, "isGateway": true, "hairpinMode": true,
    "ipam": {"type": "host-local", "dataDir": %[2]q, "routes": [{"dst": "0.0.0.0/0"}],
      "ranges": [[{"subnet": %[3]q, "gateway": %[4]q}]]}
  }]
}
`, c.net.Bridge, c.path("cni", "addresses"), c.net.Subnet, c.net.host())
	if err := os.MkdirAll(c.path("cni"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(c.path("cni", "weir.conflist"), []byte(text), 0o644)
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
		free := true
		for _, u := range used {
			free = free && !p.Overlaps(u)
		}
		if free {
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
