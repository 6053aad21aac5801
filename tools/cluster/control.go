package cluster

import (
	"context"
	"fmt"
	"net/http"
)

// serviceRange is the address range of services. It is not routed: there is no
// kube-proxy.
const serviceRange = "10.96.0.0/16"

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
	if err := await(ctx, server, c.serverReady); err != nil {
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

// serverReady checks whether the API server is ready.
func (c *Cluster) serverReady(ctx context.Context) error {
	return c.api.Do(ctx, http.MethodGet, "/readyz", nil, nil)
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
