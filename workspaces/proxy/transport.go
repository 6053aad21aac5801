package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"weir/models"
)

const (
	dialTimeout    = 5 * time.Second
	idleTimeout    = 60 * time.Second // shorter than the hour that Jupyter keeps a connection
	idleTotal      = 512
	idlePerTarget  = 16
	maxHeaderBytes = 256 << 10
	copyBuffer     = 32 << 10
)

// newTransport makes the one pool of connections to all notebooks. A target's
// connections are kept under its workspace and generation (see poolHost), so
// those of a stopped generation are never used again and idle out.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true, // bytes pass as they are
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerTarget,
		IdleConnTimeout:        idleTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ReadBufferSize:         copyBuffer,
		WriteBufferSize:        copyBuffer,
	}
}

type endpointKey struct{}

// withEndpoint sets what dial connects to; the address in the URL is only the name
// of the pool.
func withEndpoint(ctx context.Context, e models.Endpoint) context.Context {
	return context.WithValue(ctx, endpointKey{}, e)
}

func dial(ctx context.Context, _, _ string) (net.Conn, error) {
	e, _ := ctx.Value(endpointKey{}).(models.Endpoint)
	if e.Network != "unix" && e.Network != "tcp" {
		return nil, fmt.Errorf("proxy: cannot dial network %q", e.Network)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, e.Network, e.Address)
}

// poolHost names a target in the pool.
func (t Target) poolHost() string {
	return "g" + strconv.FormatInt(t.Generation, 10) + ".ws-" + strconv.FormatInt(t.Workspace, 10)
}

// buffers is a pool of buffers for copying responses.
type buffers struct{ sync.Pool }

var copyBuffers = &buffers{sync.Pool{New: func() any { return new([copyBuffer]byte) }}}

func (b *buffers) Get() []byte  { return b.Pool.Get().(*[copyBuffer]byte)[:] }
func (b *buffers) Put(s []byte) { b.Pool.Put((*[copyBuffer]byte)(s)) }
