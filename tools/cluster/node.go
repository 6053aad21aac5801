package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"weir/tools/cluster/image"
)

const nodeName = "weir"

// startKubelet starts the kubelet in containerd's mount namespace, and waits
// until the node accepts pods.
func (c *Cluster) startKubelet(ctx context.Context, containerd *running) error {
	if err := c.writeKubelet(); err != nil {
		return err
	}
	kubelet, err := c.spawn("kubelet", findProgram("nsenter"), fmt.Sprintf("--mount=/proc/%d/ns/mnt", containerd.pid), "--",
		c.program("kubelet"), "--config="+c.path("kubelet.json"),
		"--kubeconfig="+c.path("keys", "node.kubeconfig"), "--root-dir="+c.path("kubelet"), "--cert-dir="+c.path("keys"),
		"--hostname-override="+nodeName, "--node-ip="+c.net.host().String())
	if err != nil {
		return err
	}
	c.Node = nodeName
	if err := await(ctx, kubelet, func(ctx context.Context) error { return c.nodeReady(ctx, nodeName) }); err != nil {
		return err
	}
	c.log("the node %s takes pods", nodeName)
	return nil
}

func (c *Cluster) containerdSocket() string { return filepath.Join(c.dir, containerdSocket) }

// privateMounts runs the node's programs in their own mount namespace: their
// mounts end with them, removing the cluster cannot remove files of a volume,
// and fixed paths are separate from another containerd or kubelet on this
// machine. Later mounts of this machine are visible inside.
const privateMounts = `set -e
dir=$1
nfs=$2
shift 2
if [ -n "$nfs" ]; then mount --bind "$nfs" /sbin/mount.nfs; fi
for place in /run/containerd /var/lib/cni /var/lib/kubelet /var/log/containers; do
	mkdir -p "$place" "$dir/private$place"
	mount --bind "$dir/private$place" "$place"
done
exec "$@"`

// startContainerd creates the node's network, starts containerd and loads the
// images. It needs root.
func (c *Cluster) startContainerd(ctx context.Context, jupyter bool) (*running, error) {
	if err := c.makeNetwork(); err != nil {
		return nil, err
	}
	if err := c.writeContainerd(); err != nil {
		return nil, err
	}
	p, err := c.spawn("containerd", findProgram("unshare"), "--mount", "--propagation=slave",
		"sh", "-c", privateMounts, "sh", c.dir, c.nfsClient, findProgram("containerd"), "--config="+c.path("containerd.toml"))
	if err != nil {
		return nil, err
	}
	if err := await(ctx, p, func(context.Context) error {
		return command("ctr", "--address", c.containerdSocket(), "--timeout", "10s", "version")
	}); err != nil {
		return nil, err
	}
	return p, c.importImages(ctx, jupyter)
}

func (c *Cluster) writeContainerd() error {
	text := fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = %[3]q
[plugins."io.containerd.internal.v1.opt"]
  path = %[4]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[5]q
  # Without CAP_SYS_RESOURCE no container starts otherwise.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %[6]q
  conf_dir = %[7]q
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = %[9]q
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = %[8]q
`, c.path("containerd"), c.path("state"), c.containerdSocket(), c.path("opt"), image.PauseName, cniPlugins,
		c.path("cni"), c.path(runcRoot), snapshotter(c.dir))
	return os.WriteFile(c.path("containerd.toml"), []byte(text), 0o644)
}

// overlayFS is the magic number of overlayfs in statfs(2).
const overlayFS = 0x794c7630

// snapshotter is containerd's snapshotter for dir. On an overlay, as in a
// container, layers are copied.
func snapshotter(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err == nil && st.Type == overlayFS {
		return "native"
	}
	return "overlayfs"
}

// importImages loads the locally built images, as there is no registry.
func (c *Cluster) importImages(ctx context.Context, jupyter bool) error {
	cache, err := cacheDir("images")
	if err != nil {
		return err
	}
	pause, err := image.Pause(ctx, cache)
	if err != nil {
		return err
	}
	images := []image.Image{pause}
	if jupyter {
		c.log("loading the image %s, made of this machine's packages", image.JupyterName)
		im, err := image.Jupyter(ctx, cache)
		if err != nil {
			return err
		}
		images = append(images, im)
		c.Image = im.Name
	}
	for _, im := range images {
		if err := c.Import(im.Path); err != nil {
			return err
		}
	}
	return nil
}

// Import loads an archive of images into the node.
func (c *Cluster) Import(path string) error {
	if c.dir == "" {
		return errors.New("images can be imported only into a cluster that was started here")
	}
	return command("ctr", "--address", c.containerdSocket(), "--namespace", containerdNamespace, "images", "import",
		"--snapshotter", snapshotter(c.dir), path)
}

// writeKubelet writes the node's keys and its kubelet's configuration.
func (c *Cluster) writeKubelet() error {
	if err := c.keys.issue("node", "system:node:"+nodeName, []string{"system:nodes"}, []string{c.net.host().String(), nodeName}); err != nil {
		return err
	}
	if err := c.writeKubeconfig(c.path("keys", "node.kubeconfig"), "node"); err != nil {
		return err
	}
	text := fmt.Sprintf(`{
  "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
  "address": %[1]q, "port": %[2]d, "healthzPort": 0,
  "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": %[3]q}},
  "authorization": {"mode": "Webhook"}, "tlsCertFile": %[4]q, "tlsPrivateKeyFile": %[5]q,
  "containerRuntimeEndpoint": %[6]q, "podLogsDir": %[7]q, "volumePluginDir": %[8]q,
  "cgroupDriver": "cgroupfs", "cgroupsPerQOS": false, "enforceNodeAllocatable": [], "failSwapOn": false, "oomScoreAdj": 0,
  "makeIPTablesUtilChains": false, "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
  "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%%", "imagefs.available": "1%%", "nodefs.inodesFree": "1%%"}
}
`, c.net.host(), c.port.kubelet, c.keys.public("ca"), c.keys.public("node"), c.keys.private("node"),
		"unix://"+c.containerdSocket(), c.path("pods"), c.path("flexvolume"))
	return os.WriteFile(c.path("kubelet.json"), []byte(text), 0o644)
}

// nodeReady checks the node's conditions.
func (c *Cluster) nodeReady(ctx context.Context, name string) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := c.api.Do(ctx, http.MethodGet, "/api/v1/nodes/"+name, nil, &node); err != nil {
		return err
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == "Ready" && cond.Status == "True" {
			return nil
		} else if cond.Type == "Ready" {
			return errors.New(cond.Message)
		}
	}
	return errors.New("it has not reported yet")
}

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
