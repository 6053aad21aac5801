package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// ServerName is the name in the listener's certificate, at any address.
const ServerName = "agents.weir"

// Backdate is how long before its issue a certificate is valid, for machines whose
// clock is behind.
const Backdate = 48 * time.Hour

const authorityLife = 20 * 365 * 24 * time.Hour

// Authority issues certificates. It is safe for concurrent use.
type Authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	clock func() time.Time
}

// Open reads the authority from a file, or creates one there that only this user
// can read.
func Open(file string, clock func() time.Time) (*Authority, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if raw, err = create(clock()); err == nil {
			err = writeNew(file, raw)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the agents' authority: %w", err)
	}
	a, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the agents' authority in %s cannot be used: %w; restore the file, or move it away and enrol every agent again",
			file, err)
	}
	a.clock = clock
	return a, nil
}

// create generates a key and certificate, as PEM.
func create(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "Weir agents"},
		NotBefore: now.Add(-Backdate), NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	text, err := keyPEM(key)
	return append(text, certificatePEM(der)...), err
}

func parse(raw []byte) (*Authority, error) {
	key, err := parseKey(raw)
	if err != nil {
		return nil, err
	}
	cert, err := ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("its key and its certificate do not belong together")
	}
	return &Authority{cert: cert, key: key}, nil
}

// writeNew writes a file atomically. It fails if the file exists, so that of two
// concurrent processes one fails.
func writeNew(file string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".authority-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), file)
}

// PEM is the authority's certificate, without its key.
func (a *Authority) PEM() []byte { return certificatePEM(a.cert.Raw) }

// Fingerprint is the authority's fingerprint.
func (a *Authority) Fingerprint() Fingerprint { return fingerprintOf(a.cert) }

// Fingerprint is 128 bits of the SHA-256 of an authority's public key.
type Fingerprint [16]byte

func fingerprintOf(cert *x509.Certificate) Fingerprint {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return Fingerprint(sum[:16])
}

// Certificate is an issued certificate.
type Certificate struct {
	PEM     []byte
	KeyHash string // hex SHA-256 of the public key
	Serial  string // hex
	Issued  time.Time
	Expires time.Time
}

// Issue signs a certificate for an agent, valid for life from now.
func (a *Authority) Issue(r Request, agent int64, life time.Duration) (Certificate, error) {
	now := a.clock().UTC().Truncate(time.Second)
	serial := newSerial()
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprintf("agent-%d", agent)},
		NotBefore: now.Add(-Backdate), NotAfter: now.Add(life), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, r.key, a.key)
	return Certificate{PEM: certificatePEM(der), KeyHash: r.KeyHash, Serial: serialText(serial), Issued: now, Expires: template.NotAfter}, err
}

// Request is a checked request for a certificate.
type Request struct {
	KeyHash string // hex SHA-256 of the public key
	key     crypto.PublicKey
}

const maxRequest = 4096 // bytes

// CheckRequest parses a PEM certificate request. It must be signed with its own
// key, which must be ECDSA on P-256.
func CheckRequest(text []byte) (Request, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(text) > maxRequest {
		return Request{}, errors.New("not a certificate request in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Request{}, fmt.Errorf("not a certificate request: %w", err)
	}
	key, ok := csr.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return Request{}, errors.New("the key must be ECDSA on P-256")
	}
	if err := csr.CheckSignature(); err != nil {
		return Request{}, fmt.Errorf("the request is not signed by its own key: %w", err)
	}
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return Request{KeyHash: fmt.Sprintf("%x", sum), key: key}, nil
}

// Peer identifies the verified certificate of a connected agent.
type Peer struct {
	Serial  string
	Issued  time.Time
	Expires time.Time
}

// PeerOf reads a verified certificate.
func PeerOf(cert *x509.Certificate) Peer {
	return Peer{Serial: serialText(cert.SerialNumber), Issued: cert.NotBefore.Add(Backdate).UTC(), Expires: cert.NotAfter.UTC()}
}

func serialText(n *big.Int) string { return fmt.Sprintf("%032x", n) }

// newSerial returns 126 random bits; the number is positive.
func newSerial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails; see crypto/rand
	b[0] = b[0]&0x3f | 0x40
	return new(big.Int).SetBytes(b[:])
}
