package notifications

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"weir/models"
)

// hookTimeout is that of a request to a webhook.
const hookTimeout = 10 * time.Second

// newClient returns a client that checks each address, follows no redirects and
// uses no proxy, which would hide the address from the check.
func newClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: hookTimeout / 2, Control: dialControl(allowPrivate)}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: hookTimeout / 2, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 1, MaxIdleConns: maxWebhooks, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       hookTimeout,
	}
}

// connectionError explains why there was no response. It omits the URL, which may
// contain a secret.
func connectionError(err error) models.Text {
	var refused refusedAddress
	var timeout net.Error
	switch {
	case errors.As(err, &refused):
		return refused.reason
	case errors.As(err, &timeout) && timeout.Timeout():
		return models.Say("The receiver did not respond within %d seconds.", int(hookTimeout/time.Second))
	}
	return models.Say("Could not connect to the receiver: %s", connectionCause(err))
}

// connectionCause says for people why a connection failed; what is not known
// here keeps the text of the error.
func connectionCause(err error) models.Text {
	var name *net.DNSError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return models.Say("the name %s was not found", name.Name)
	case errors.As(err, &name):
		return models.Say("the name %s could not be looked up", name.Name)
	case errors.As(err, &host):
		return models.Say("its TLS certificate is for another name")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return models.Say("its TLS certificate has expired or is not valid yet")
	case errors.As(err, &certificate):
		return models.Say("its TLS certificate is not trusted")
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return models.Say("it does not use TLS")
	case errors.Is(err, syscall.ECONNREFUSED):
		return models.Say("it accepts no connections")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return models.Say("it cannot be reached from this network")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return models.Say("it closed the connection without a response")
	}
	return models.Say("%s", errorText(err))
}

// errorText is the text of an error without the URL that net/http adds.
func errorText(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return excerpt(fmt.Sprint(err))
}
