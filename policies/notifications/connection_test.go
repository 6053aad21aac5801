package notifications

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Real failures of connections, in the reader's words and without the address.
func TestConnectionCause(t *testing.T) {
	secure, plain := httptest.NewTLSServer(nil), httptest.NewServer(nil)
	defer secure.Close()
	defer plain.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer silent.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	for address, want := range map[string]string{
		secure.URL: "its TLS certificate is not trusted",
		strings.Replace(plain.URL, "http:", "https:", 1): "it does not use TLS",
		silent.URL: "it closed the connection without a response",
		closed.URL: "it accepts no connections",
	} {
		res, err := http.Post(address+"/secret-path", "text/plain", nil)
		if err == nil {
			res.Body.Close()
			t.Fatalf("%s answered", address)
		}
		if got := connectionCause(err).String(); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
		if got := connectionError(err).String(); strings.Contains(got, "secret-path") {
			t.Errorf("%q names the address", got)
		}
	}
	trusting := secure.Client()
	trusting.Transport.(*http.Transport).TLSClientConfig.ServerName = "weir.invalid"
	if _, err := trusting.Get(secure.URL); connectionCause(err).String() != "its TLS certificate is for another name" {
		t.Errorf("another name: %v", err)
	}
	for err, want := range map[error]string{
		&net.DNSError{Name: "receiver.example", IsNotFound: true}: "the name receiver.example was not found",
		&net.DNSError{Name: "receiver.example"}:                   "the name receiver.example could not be looked up",
		errors.New("a new kind of failure"):                       "a new kind of failure",
	} {
		if got := connectionCause(err).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
