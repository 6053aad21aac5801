package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

const (
	keyType         = "PRIVATE KEY"
	certificateType = "CERTIFICATE"
)

// NewKey generates an agent's key, as PEM.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return keyPEM(key)
}

// keyPEM writes a private key (PKCS #8).
func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: der}), err
}

// parseKey reads the first private key of a PEM text; it must be ECDSA on
// P-256.
func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	der := find(text, keyType)
	if der == nil {
		return nil, errors.New("there is no private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	if ec, ok := key.(*ecdsa.PrivateKey); ok && ec.Curve == elliptic.P256() {
		return ec, nil
	}
	return nil, errors.New("the key must be ECDSA on P-256")
}

// ParseCertificate reads the first certificate of a PEM text.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	der := find(text, certificateType)
	if der == nil {
		return nil, errors.New("there is no certificate")
	}
	return x509.ParseCertificate(der)
}

// FingerprintOf is the fingerprint of the authority whose certificate is the first
// of a PEM text.
func FingerprintOf(text []byte) (Fingerprint, error) {
	cert, err := ParseCertificate(text)
	if err == nil && !cert.IsCA {
		err = errors.New("the certificate is not an authority's")
	}
	if err != nil {
		return Fingerprint{}, err
	}
	return fingerprintOf(cert), nil
}

// NewRequest creates a certificate request for a key, both as PEM.
func NewRequest(keyPEM []byte) ([]byte, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: der})
}

func find(text []byte, kind string) []byte {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == kind {
			return block.Bytes
		}
	}
	return nil
}
