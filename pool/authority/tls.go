package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// serverLife is the lifetime of the listener's certificate, which is replaced
// after half of it.
const serverLife = 90 * 24 * time.Hour

// ServerTLS configures the listener for agents: TLS 1.3, a certificate for
// ServerName, and optional client certificates of the authority.
func (a *Authority) ServerTLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	s := &server{authority: a}
	return &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots, Time: a.clock,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate() }}
}

// server caches the listener's certificate.
type server struct {
	authority *Authority
	mu        sync.Mutex
	current   *tls.Certificate
	renewAt   time.Time
}

func (s *server) certificate() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.authority.clock()
	if s.current != nil && now.Before(s.renewAt) {
		return s.current, nil
	}
	cert, err := s.authority.issueServer(now)
	if err == nil {
		s.current, s.renewAt = cert, now.Add(serverLife/2)
	}
	return cert, err
}

func (a *Authority) issueServer(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{ServerName},
		NotBefore: now.Add(-Backdate), NotAfter: now.Add(serverLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	// Agents that have only a code need the authority's certificate too.
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, err
}

// ErrStranger means that the server is not the agent's portal.
var ErrStranger = errors.New("who answers there is not the portal that this agent is for: its authority is another")

// PinnedTLS configures an agent that is not enrolled yet: it accepts only a
// listener whose authority has the fingerprint. clock is the agent's.
func PinnedTLS(f Fingerprint, clock func() time.Time) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: ServerName,
		InsecureSkipVerify: true, // VerifyConnection verifies with the pinned root
		VerifyConnection: func(s tls.ConnectionState) error {
			i := slices.IndexFunc(s.PeerCertificates, func(c *x509.Certificate) bool { return c.IsCA && fingerprintOf(c) == f })
			if i < 0 {
				return ErrStranger
			}
			roots := x509.NewCertPool()
			roots.AddCert(s.PeerCertificates[i])
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: ServerName, CurrentTime: clock()})
			return err
		}}
}

// AgentTLS configures an enrolled agent. The certificate, its key and the
// authority's certificate are PEM.
func AgentTLS(certificate, key, authority []byte, clock func() time.Time) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	ca, err := ParseCertificate(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: ServerName, RootCAs: roots, Certificates: []tls.Certificate{pair},
		Time: clock}, nil
}

// expiredAlert is the alert certificate_expired (RFC 8446, section 6).
const expiredAlert = tls.AlertError(45)

// Expired reports whether the portal has rejected an agent's certificate because
// it has expired.
func Expired(err error) bool {
	op, ok := errors.AsType[*net.OpError](err) // over TCP, crypto/tls does not export the type of the alert
	return ok && op.Op == "remote error" && op.Err.Error() == expiredAlert.Error()
}
