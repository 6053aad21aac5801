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

const maxConfirms = 5 // of one heartbeat

// client is the portal's client for an agent, with the agent's state.
type client struct {
	dir   *dir
	state state
	clock func() time.Time
	log   *slog.Logger

	url  string // of the listener; empty if unknown
	http *http.Client
}

// refusal is an error response of the portal.
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

// Unwrap returns the error of the loop.
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

// final reports whether a retry is useless.
func (r *refusal) final() bool {
	return r.Status >= 400 && r.Status < 500 && r.Status != http.StatusTooManyRequests
}

// newHTTP returns a client. It resets closed connections, so that abandoned
// requests are not delivered later.
func newHTTP(config *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: requestTime, KeepAlive: 15 * time.Second}
	return &http.Client{Timeout: requestTime, Transport: &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: requestTime, MaxIdleConnsPerHost: 1, Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			return conn, err
		}}}
}

// use selects the certificate: the renewed one, if any.
func (c *client) use() error {
	cred := c.state.Current
	if c.state.Next.Certificate != "" {
		cred = c.state.Next
	}
	config, err := authority.AgentTLS([]byte(cred.Certificate), []byte(cred.Key), []byte(c.state.Authority), c.clock)
	if err != nil {
		return fmt.Errorf("the agent's certificate cannot be used: %w", err)
	}
	c.useTLS(config)
	return nil
}

func (c *client) useTLS(config *tls.Config) {
	c.close()
	c.http = newHTTP(config)
}

func (c *client) close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// Heartbeat implements [Portal]. It stores the token of the response before it
// returns. If that fails, the next heartbeat uses the old token, as after a lost
// response.
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
	if next.Next.Certificate != "" { // it was accepted
		next.Current, next.Next = next.Next, credential{}
	}
	if err := c.save(next); err != nil {
		c.log.ErrorContext(ctx, "the state cannot be stored", "err", err)
		return o, nil
	}
	if o.Renew {
		if err := c.renew(ctx); err != nil {
			c.log.WarnContext(ctx, "the certificate is not renewed yet", "err", err)
		}
	}
	return o, nil
}

// save stores the state on disk.
func (c *client) save(next state) error {
	err := c.dir.save(next)
	if err == nil {
		c.state = next
	}
	return err
}

// send sends a heartbeat.
func (c *client) send(ctx context.Context, b providers.Heartbeat) (o providers.Orders, err error) {
	b.Token = c.state.Token
	err = confirmed(&b.Confirm, func() (string, error) {
		o = providers.Orders{}
		err := c.post(ctx, "/v1/heartbeat", b, &o)
		return o.Confirm, err
	})
	return o, err
}

// renew gets a certificate for a new key. The current one is kept until a heartbeat
// with the new one was accepted.
func (c *client) renew(ctx context.Context) error {
	key, csr, err := newKey()
	if err != nil {
		return err
	}
	r, out := providers.Renewal{CSR: csr, Token: c.state.Token}, providers.Renewed{}
	err = confirmed(&r.Confirm, func() (string, error) {
		out = providers.Renewed{}
		err := c.post(ctx, "/v1/renew", r, &out)
		return out.Confirm, err
	})
	if err != nil {
		return err
	}
	next := c.state
	next.Next = credential{Key: key, Certificate: out.Certificate}
	if err := c.save(next); err != nil {
		return err
	}
	return c.use()
}

// newKey returns a new key and a certificate request for it, as PEM.
func newKey() (key, csr string, err error) {
	raw, err := authority.NewKey()
	if err != nil {
		return "", "", err
	}
	request, err := authority.NewRequest(raw)
	return string(raw), string(request), err
}

// confirmed repeats a request while the portal requests its confirmation.
func confirmed(confirm *string, send func() (string, error)) (err error) {
	for range maxConfirms {
		if *confirm, err = send(); err != nil || *confirm == "" {
			return err
		}
	}
	return errUndecided
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
	if _, refused := errors.AsType[*refusal](err); err != nil && !refused {
		c.url = ""
	}
	return err
}

// post sends and reads JSON. The error is a *refusal, or one of the connection.
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
		r.Detail = fmt.Sprintf("the portal answers %d %s", status, strings.TrimSpace(printable(string(body), 100)))
	}
	r.Status = status
	return r
}
