package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Client makes the few REST calls of this package and its tests; other callers
// use client-go and the kubeconfig.
type Client struct {
	server string
	http   *http.Client
}

// StatusError is an error response of the API server.
type StatusError struct {
	Code    int // HTTP status
	Message string
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// NotFound reports whether err means that an object does not exist.
func NotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

func newClient(server string, k keys, file string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(k.public(file), k.private(file))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(k.public("ca"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &Client{server, &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
	}}}, nil
}

// Do sends in as JSON, unless it is nil, and decodes the response into out,
// unless that is nil. A PATCH is a merge patch. An error response is a
// [StatusError].
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return statusError(resp)
	}
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func statusError(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	var status struct{ Message string }
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = string(text)
	}
	return &StatusError{resp.StatusCode, status.Message}
}
