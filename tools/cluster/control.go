package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
)

// serviceRange is the address range of services. It is not routed: there is no
// kube-proxy.
const serviceRange = "10.96.0.0/16"

// ports are the ports of the cluster, on 127.0.0.1 except for the kubelet's.
type ports struct{ etcd, peer, api, kubelet, kwok int }

func (p ports) server() string { return fmt.Sprintf("https://127.0.0.1:%d", p.api) }

// freePorts finds unused ports. All stay open until the last is found, so that
// they differ.
func freePorts() (p ports, err error) {
	for _, port := range []*int{&p.etcd, &p.peer, &p.api, &p.kubelet, &p.kwok} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, err
		}
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// startControlPlane starts etcd, the API server, the scheduler and the
// controllers. It does not wait for the controllers to be ready.
func (c *Cluster) startControlPlane(ctx context.Context) (controllers *running, err error) {
	if _, err := c.startEtcd(); err != nil {
		return nil, err
	}
	server, err := c.startAPIServer()
	if err != nil {
		return nil, err
	}
	if err := await(ctx, server, func(ctx context.Context) error {
		return c.api.Do(ctx, http.MethodGet, "/readyz", nil, nil)
	}); err != nil {
		return nil, err
	}
	c.log("the API server answers at %s", c.port.server())
	if _, err := c.spawn("kube-scheduler", c.program("kube-scheduler"),
		"--kubeconfig="+c.path("keys", "scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400"); err != nil {
		return nil, err
	}
	return c.startControllers()
}

func (c *Cluster) startControllers() (*running, error) {
	args := []string{
		"--kubeconfig=" + c.path("keys", "controllers.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials", "--service-account-private-key-file=" + c.keys.private("accounts"),
		"--root-ca-file=" + c.keys.public("ca"),
		"--cluster-signing-cert-file=" + c.keys.public("ca"), "--cluster-signing-key-file=" + c.keys.private("ca"),
		// A higher rate limit makes the start faster.
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--cluster-name=weir", "--flex-volume-plugin-dir=" + c.path("flexvolume"),
	}
	if c.grace > 0 {
		args = append(args, "--node-monitor-grace-period="+c.grace.String())
	}
	return c.spawn("kube-controller-manager", c.program("kube-controller-manager"), args...)
}

func (c *Cluster) program(name string) string { return filepath.Join(c.bin, name) }

// prepare creates the keys, the kubeconfigs and the client.
func (c *Cluster) prepare() (err error) {
	if c.port, err = freePorts(); err != nil {
		return err
	}
	if c.keys, err = newKeys(c.path("keys")); err != nil {
		return err
	}
	local := []string{"127.0.0.1", "localhost"}
	for _, who := range []struct {
		file, name    string
		groups, hosts []string
	}{
		{"etcd", "etcd", nil, local},
		{"server", "kube-apiserver", []string{"system:masters"}, append(local, "kubernetes.default.svc", "10.96.0.1")},
		{"admin", "admin", []string{"system:masters"}, nil},
		{"controllers", "system:kube-controller-manager", nil, nil},
		{"scheduler", "system:kube-scheduler", nil, nil},
		{"kwok", "kwok", []string{"system:masters"}, local},
	} {
		if err := c.keys.issue(who.file, who.name, who.groups, who.hosts); err != nil {
			return err
		}
	}
	for _, file := range []string{"controllers", "scheduler", "kwok"} {
		if err := c.writeKubeconfig(c.path("keys", file+".kubeconfig"), file); err != nil {
			return err
		}
	}
	if err := c.writeKubeconfig(c.Kubeconfig, "admin"); err != nil {
		return err
	}
	c.api, err = newClient(c.port.server(), c.keys, "admin")
	return err
}

// startEtcd starts etcd, which requires client certificates: it stores all
// secrets.
func (c *Cluster) startEtcd() (*running, error) {
	client := fmt.Sprintf("https://127.0.0.1:%d", c.port.etcd)
	peer := fmt.Sprintf("https://127.0.0.1:%d", c.port.peer)
	ca, cert, key := c.keys.public("ca"), c.keys.public("etcd"), c.keys.private("etcd")
	return c.spawn("etcd", findProgram("etcd"), "--name=weir", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=weir="+peer,
		"--client-cert-auth", "--trusted-ca-file="+ca, "--cert-file="+cert, "--key-file="+key,
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+ca, "--peer-cert-file="+cert, "--peer-key-file="+key)
}

func (c *Cluster) startAPIServer() (*running, error) {
	ca, cert, key := c.keys.public("ca"), c.keys.public("server"), c.keys.private("server")
	return c.spawn("kube-apiserver", c.program("kube-apiserver"),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", c.port.etcd),
		"--etcd-cafile="+ca, "--etcd-certfile="+c.keys.public("etcd"), "--etcd-keyfile="+c.keys.private("etcd"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.port.api), "--tls-cert-file="+cert, "--tls-private-key-file="+key,
		"--client-ca-file="+ca, "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-key-file="+c.keys.private("accounts"), "--service-account-signing-key-file="+c.keys.private("accounts"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range="+serviceRange,
		// Debian's etcd is too old for it: watches from the present on would
		// be refused.
		"--feature-gates=WatchList=false",
		// The API server is not used as a service.
		"--endpoint-reconciler-type=none",
		// For logs and exec: the node's name does not resolve.
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority="+ca,
		"--kubelet-client-certificate="+cert, "--kubelet-client-key="+key)
}
