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

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// keys is the cluster's certificate authority and the directory of its files.
type keys struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newKeys creates the authority, and the key that signs service account
// tokens. Certificates begin in the past, for clocks that are set while the
// cluster runs.
func newKeys(dir string) (keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return keys{}, err
	}
	k := keys{dir: dir}
	var err error
	if k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return keys{}, err
	}
	if k.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "weir-cluster", NotBefore: time.Now().Add(-time.Hour)},
		k.key); err != nil {
		return keys{}, err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keys{}, err
	}
	return k, errors.Join(writeKey(k.private("accounts"), accounts), k.write("ca", k.cert.Raw, k.key))
}

// issue creates a key and a certificate for name, as a client and as a server
// at hosts. The organizations are the groups in Kubernetes.
func (k keys) issue(file, name string, groups, hosts []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand does not fail
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: k.cert.NotBefore, NotAfter: k.cert.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, k.cert, &key.PublicKey, k.key)
	if err != nil {
		return err
	}
	return k.write(file, signed, key)
}

// write writes a certificate and its key.
func (k keys) write(file string, certificate []byte, key *ecdsa.PrivateKey) error {
	text := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate})
	return errors.Join(cert.WriteCert(k.public(file), text), writeKey(k.private(file), key))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return keyutil.WriteKey(path, text)
}

func (k keys) public(file string) string  { return filepath.Join(k.dir, file+".crt") }
func (k keys) private(file string) string { return filepath.Join(k.dir, file+".key") }
