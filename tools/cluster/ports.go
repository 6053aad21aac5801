package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// ports are the ports of the cluster, on 127.0.0.1 except for the kubelet's.
type ports struct{ etcd, peer, api, kubelet int }

func (p ports) server() string { return fmt.Sprintf("https://127.0.0.1:%d", p.api) }

// freePorts finds unused ports. All stay open until the last is found, so that
// they differ.
func freePorts() (p ports, err error) {
	for _, port := range []*int{&p.etcd, &p.peer, &p.api, &p.kubelet} {
		l, err := listen()
		if err != nil {
			return p, err
		}
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// listen listens on a port below those that the system gives to connections: a program
// that starts later, or again, still finds it unused. The end-to-end tests take theirs
// from 20000.
func listen() (net.Listener, error) {
	const first, count, tries = 10_000, 10_000, 100
	var failed error
	for range tries {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+rand.IntN(count)))
		if err == nil {
			return l, nil
		}
		failed = err
	}
	return nil, errors.Join(errors.New("no port from 10000 to 20000 is free"), failed)
}
