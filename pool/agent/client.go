package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"weir/models"
	"weir/pool/authority"
	"weir/pool/providers"
)

const (
	requestTime = 10 * time.Second
	maxAnswer   = 1 << 20 // bytes
	maxConfirms = 5       // of one heartbeat
)

// client speaks to the portal for an agent, and keeps what it learns.
type client struct {
	dir   *dir
	state state
	clock func() time.Time
	log   *slog.Logger

	url  string       // of the listener; empty until it is known
	http *http.Client // with the certificate that is used now
}

// refusal is a portal's answer that is no success.
type refusal struct {
	Status int         `json:"status"`
	Kind   models.Kind `json:"kind"`
	Detail string      `json:"detail"`
	Errors []struct {
		Field  string `json:"field"`
		Reason string `json:"reason"`
	} `json:"errors"`
}

func (r *refusal) Error() string {
	text := r.Detail
	for _, f := range r.Errors {
		text += fmt.Sprintf(" %s: %s.", f.Field, f.Reason)
	}
	return text
}

// Unwrap tells what a refusal means for the loop.
func (r *refusal) Unwrap() error {
	switch r.Kind {
	case models.KindForbidden, models.KindUnauthenticated:
		return ErrShutOut
	case models.KindInvalid:
		return errInvalid
	default:
		return nil
	}
}

// final tells whether asking again cannot help.
func (r *refusal) final() bool { return r.Status >= 400 && r.Status < 500 }

// newHTTP makes a client for one certificate. A connection that is given up is
// reset, so that what could not be delivered is not delivered later.
func newHTTP(config *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: requestTime, KeepAlive: 15 * time.Second}
	return &http.Client{Timeout: requestTime, Transport: &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: requestTime, MaxIdleConnsPerHost: 1, Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // it only makes things better
			}
			return conn, err
		}}}
}

// use makes the client show a certificate: the renewed one, if there is one.
func (c *client) use() error {
	cred := c.state.Current
	if c.state.Next.Certificate != "" {
		cred = c.state.Next
	}
	config, err := authority.AgentTLS([]byte(cred.Certificate), []byte(cred.Key), []byte(c.state.Authority), c.clock)
	if err != nil {
		return fmt.Errorf("the agent's certificate cannot be used: %w", err)
	}
	c.speak(config)
	return nil
}

// speak makes a connection in another way from now on.
func (c *client) speak(config *tls.Config) {
	c.close()
	c.http = newHTTP(config)
}

func (c *client) close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// Heartbeat implements [Portal]. The token of the answer is on the disk before
// it returns; where that fails, the older one stays in use, which the portal
// takes for a lost answer.
func (c *client) Heartbeat(ctx context.Context, b providers.Heartbeat) (providers.Orders, error) {
	o, err := c.send(ctx, b)
	if errors.Is(err, ErrShutOut) && c.state.Next.Certificate != "" {
		c.log.WarnContext(ctx, "the renewed certificate is not accepted; going back to the one before", "err", err)
		c.state.Next = credential{}
		if err := c.use(); err != nil {
			return o, err
		}
		o, err = c.send(ctx, b)
	}
	if err != nil {
		return o, err
	}
	models.Failpoint("agent.beat")
	next := c.state
	next.Token = o.Token
	if next.Next.Certificate != "" { // it was good
		next.Current, next.Next = next.Next, credential{}
	}
	if err := c.dir.save(next); err != nil {
		c.log.ErrorContext(ctx, "the state cannot be kept", "err", err)
		return o, nil
	}
	c.state = next
	if o.Renew {
		if err := c.renew(ctx); err != nil {
			c.log.WarnContext(ctx, "the certificate is not renewed yet", "err", err)
		}
	}
	return o, nil
}

// send says a heartbeat, and again as often as the portal wants it confirmed.
func (c *client) send(ctx context.Context, b providers.Heartbeat) (o providers.Orders, err error) {
	b.Token = c.state.Token
	for range maxConfirms {
		o = providers.Orders{}
		if err := c.post(ctx, "/v1/heartbeat", b, &o); err != nil {
			return o, err
		}
		if o.Confirm == "" {
			return o, nil
		}
		b.Confirm = o.Confirm
	}
	return o, errUndecided
}

// renew gets a certificate for a new key. It is used from the next heartbeat on;
// the present one is kept until then.
func (c *client) renew(ctx context.Context) error {
	key, err := authority.NewKey()
	if err != nil {
		return err
	}
	csr, err := authority.NewRequest(key)
	if err != nil {
		return err
	}
	out, err := c.certify(ctx, providers.Renewal{CSR: string(csr), Token: c.state.Token})
	if err != nil {
		return err
	}
	next := c.state
	next.Next = credential{Key: string(key), Certificate: out.Certificate}
	if err := c.dir.save(next); err != nil {
		return err
	}
	c.state = next
	return c.use()
}

// certify asks for a certificate, and again as often as the portal wants it
// confirmed.
func (c *client) certify(ctx context.Context, r providers.Renewal) (out providers.Renewed, err error) {
	for range maxConfirms {
		out = providers.Renewed{}
		if err := c.post(ctx, "/v1/renew", r, &out); err != nil {
			return out, err
		}
		if out.Confirm == "" {
			return out, nil
		}
		r.Confirm = out.Confirm
	}
	return out, errUndecided
}

// errUndecided means that the portal keeps requesting confirmation.
var errUndecided = errors.New("the portal does not come to a decision about this agent")

// post sends a request to the listener. If the listener does not respond, its
// address is looked up again before the next request.
func (c *client) post(ctx context.Context, path string, in, out any) error {
	if c.url == "" {
		url, err := listener(ctx, c.state.Server)
		if err != nil {
			return err
		}
		c.url = url
	}
	err := post(ctx, c.http, c.url+path, in, out)
	if refused := (*refusal)(nil); err != nil && !errors.As(err, &refused) {
		c.url = ""
	}
	return err
}

// post sends JSON and reads JSON; anything but success is a *refusal, or an
// error of the connection.
func post(ctx context.Context, client *http.Client, url string, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if authority.Expired(err) {
		return fmt.Errorf("%w: its certificate has expired; enrol it again with an authorization code", ErrShutOut)
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return refusalOf(res.StatusCode, body)
	}
	return json.Unmarshal(body, out)
}

func refusalOf(status int, body []byte) *refusal {
	r := &refusal{}
	if json.Unmarshal(body, r) != nil || r.Detail == "" {
		r.Detail = fmt.Sprintf("the portal answers %d %s", status, strings.TrimSpace(visible(string(body), 100)))
	}
	r.Status = status
	return r
}
