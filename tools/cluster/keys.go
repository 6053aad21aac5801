package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is the lifetime of all certificates, longer than any test
// cluster's.
const lifetime = 365 * 24 * time.Hour

// keys is the cluster's certificate authority and the directory of its files.
type keys struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newKeys creates the authority, and the key that signs service account
// tokens.
func newKeys(dir string) (keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return keys{}, err
	}
	k := keys{dir: dir}
	template := certificate(pkix.Name{CommonName: "weir cluster"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	var err error
	if k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return keys{}, err
	}
	k.cert = template
	signed, err := k.sign("ca", template, k.key)
	if err != nil {
		return keys{}, err
	}
	if k.cert, err = x509.ParseCertificate(signed); err != nil {
		return keys{}, err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keys{}, err
	}
	return k, writeKey(k.private("accounts"), accounts)
}

// issue creates a key and a certificate for name, as a client and as a server
// at hosts. The organizations are the groups in Kubernetes.
func (k keys) issue(file, name string, groups, hosts []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate(pkix.Name{CommonName: name, Organization: groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	_, err = k.sign(file, template, key)
	return err
}

// certificate is the template of all certificates. It begins in the past, for
// clocks that are set while the cluster runs.
func certificate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand does not fail
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime)}
}

func (k keys) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	signed, err := x509.CreateCertificate(rand.Reader, template, k.cert, &key.PublicKey, k.key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return signed, errors.Join(os.WriteFile(k.public(file), text, 0o644), writeKey(k.private(file), key))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func (k keys) public(file string) string  { return filepath.Join(k.dir, file+".crt") }
func (k keys) private(file string) string { return filepath.Join(k.dir, file+".key") }
