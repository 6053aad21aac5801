package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/policies"
)

func TestOIDCSettings(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(" s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, nil, []string{"--oidc-issuer", "https://id.example.org/realms/staff", "--oidc-client-id", "weir",
		"--oidc-client-secret-file", secret, "--oidc-domains", "Example.org, lab.example.org", "--oidc-link", "true", "--oidc-session-max", "8h",
		"--oidc-groups", "cn=admins,ou=it=administrator; /vision = Vision: 2 : lead\nguests=vision:guest;"})
	if err != nil {
		t.Fatal(err)
	}
	want := OIDC{Issuer: "https://id.example.org/realms/staff", ClientID: "weir", ClientSecret: "s3cret", SecretFile: secret,
		Name: "id.example.org", Domains: []string{"example.org", "lab.example.org"}, Link: true, GroupsClaim: "groups", SessionMax: 8 * time.Hour,
		Groups: []policies.GroupRule{{Group: "cn=admins,ou=it", Admin: true}, {Group: "/vision", Project: "Vision: 2", Role: "lead"},
			{Group: "guests", Project: "vision", Role: "guest"}}}
	if !reflect.DeepEqual(c.OIDC, want) {
		t.Errorf("got %+v, want %+v", c.OIDC, want)
	}
	if strings.Contains(c.String(), "s3cret") {
		t.Errorf("the settings show the secret: %s", c)
	}
}

func TestOIDCMistakes(t *testing.T) {
	empty := writeConfig(t, "")
	for _, m := range []struct {
		args []string
		want []string
	}{
		{[]string{"--oidc-issuer", "http://id.example.org", "--oidc-groups", "a", "--oidc-domains", "*.example.org", "--oidc-link", "yes", "--oidc-session-max", "1s", "--oidc-name", "a\x01"},
			[]string{"--oidc-issuer: ", "--oidc-groups: ", "--oidc-domains: ", "--oidc-link: ", "--oidc-session-max: ", "--oidc-name: "}},
		{[]string{"--oidc-issuer", "https://id.example.org", "--oidc-client-secret-file", empty + "-not", "--oidc-groups-claim", "", "--oidc-groups", "a=b:c"},
			[]string{"oidc-client-id: ", "oidc-domains: ", "oidc-client-secret-file: ", "oidc-groups-claim: "}},
		{[]string{"--oidc-issuer", "https://id.example.org", "--oidc-client-id", "x", "--oidc-domains", "example.org", "--oidc-client-secret-file", empty},
			[]string{"oidc-client-secret-file: "}},
		{[]string{"--oidc-client-id", "x", "--oidc-client-secret-file", empty, "--oidc-domains", "example.org", "--oidc-groups", "a=administrator", "--oidc-link", "true"},
			[]string{"oidc-client-id: ", "oidc-client-secret-file: ", "oidc-domains: ", "oidc-groups: ", "oidc-link: "}},
		{[]string{"--oidc-groups", "a=b:"}, []string{"--oidc-groups: "}},
		{[]string{"--oidc-groups", "a=administrator;a=administrator"}, []string{"--oidc-groups: "}},
		{[]string{"--oidc-issuer", "https://user:password@id.example.org"}, []string{"--oidc-issuer: "}},
		{[]string{"--oidc-issuer", "http://127.example.org"}, []string{"--oidc-issuer: "}},
	} {
		_, err := load(t, nil, m.args)
		if err == nil {
			t.Errorf("%q is taken", m.args)
			continue
		}
		for _, want := range m.want {
			if !strings.Contains(err.Error(), "\n  "+want) {
				t.Errorf("%q is missing in:\n%v", want, err)
			}
		}
	}
}
