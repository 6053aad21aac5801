package cluster

import (
	"fmt"
	"net"
)

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
