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
	idleTimeout    = 60 * time.Second // shorter than Jupyter's, of an hour
	idleTotal      = 512
	idlePerTarget  = 16
	maxHeaderBytes = 256 << 10
	copyBuffer     = 32 << 10
)

// newTransport returns the pool of connections to all notebooks. Connections are
// pooled by workspace and generation (see poolHost), so those of a stopped
// generation are not used again.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true, // responses are forwarded unchanged
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

// withEndpoint sets the endpoint to dial; the host of the URL is only the key of the
// pool.
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

// poolHost returns the key of a target in the pool.
func (t Target) poolHost() string {
	return "g" + strconv.FormatInt(t.Generation, 10) + ".ws-" + strconv.FormatInt(t.Workspace, 10)
}

// buffers is a pool of buffers for copying responses.
type buffers struct{ sync.Pool }

var copyBuffers = &buffers{sync.Pool{New: func() any { return new([copyBuffer]byte) }}}

func (b *buffers) Get() []byte  { return b.Pool.Get().(*[copyBuffer]byte)[:] }
func (b *buffers) Put(s []byte) { b.Pool.Put((*[copyBuffer]byte)(s)) }
