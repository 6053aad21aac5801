package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	requestTime = 10 * time.Second
	maxAnswer   = 1 << 20 // bytes
)

// ParseServer checks the address of a portal, or of its listener for agents:
// http(s)://host[:port].
func ParseServer(text string) (string, error) {
	text = strings.TrimSuffix(text, "/")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != text || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q must be the portal's address, such as http://weir.example.org:8080", text)
	}
	return text, nil
}

// listener finds the address of the listener for agents: the portal returns it, and
// a server whose certificate is not publicly trusted is the listener itself. The
// address need not be trusted, because the listener is authenticated.
func listener(ctx context.Context, server string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/agents/address", nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if _, unknown := errors.AsType[*tls.CertificateVerificationError](err); unknown {
		return server, nil
	}
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	var answer struct {
		URL string `json:"url"`
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(raw, &answer) != nil {
		return "", fmt.Errorf("%s tells no address for agents (%s): is it a portal, and does it serve with --agents-listen?", server, res.Status)
	}
	return checkAddress(server, answer.URL)
}

// checkAddress validates an address from the portal. A loopback address is useless
// on other machines.
func checkAddress(server, address string) (string, error) {
	address, err := ParseServer(address)
	if err != nil || !strings.HasPrefix(address, "https://") {
		return "", fmt.Errorf("%s tells %q as its address for agents, which is none", server, address)
	}
	if loopback(address) && !loopback(server) {
		return "", fmt.Errorf("%s tells agents to come to %s, which is this machine itself: it has to serve with --agents-listen 0.0.0.0:8443 or another address that can be reached from here", server, address)
	}
	return address, nil
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
