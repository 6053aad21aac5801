package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Whatever stands around the key, the secrets that it seals stay readable.
func TestPrivateKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "authority.pem")
	key := "-----BEGIN PRIVATE KEY-----\nAAEC\n-----END PRIVATE KEY-----\n"
	certificate := "-----BEGIN CERTIFICATE-----\nAwQF\n-----END CERTIFICATE-----\n"
	for text, want := range map[string]string{key + certificate: "\x00\x01\x02", certificate + "\n" + key: "\x00\x01\x02", certificate: "", "": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := privateKey(file)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
