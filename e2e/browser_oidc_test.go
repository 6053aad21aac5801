package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"weir/policies/openid/openidtest"
)

// providerArgs are the arguments of a server whose people can sign in with a provider.
func providerArgs(t *testing.T, provider *openidtest.Provider) []string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(openidtest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--oidc-issuer", provider.Issuer, "--oidc-client-id", openidtest.ClientID, "--oidc-client-secret-file", secret,
		"--oidc-name", "Example University", "--oidc-domains", "example.org", "--oidc-groups", "admins=administrator"}
}

// TestSignInByProviderInABrowser goes to a real provider and back, in and
// out, in both languages.
func TestSignInByProviderInABrowser(t *testing.T) {
	t.Parallel()
	provider := openidtest.New(t)
	s := newServer(t, options{gpus: "none", args: providerArgs(t, provider)})
	provider.SetRedirect(s.url + "/signin/oidc/callback")
	provider.AddPerson(openidtest.Person{Subject: "kim", Email: "kim@example.org", Verified: true, Name: "Kim Lee", Groups: []string{"admins"}})
	provider.AddPerson(openidtest.Person{Subject: "lee", Email: "lee@lab.example.org", Verified: true})
	english := readCatalog(t)
	axe := readAxe(t)

	kim := startChromium(t).person(t, s.url).tab()
	kim.goTo("/audit")
	kim.at("/signin")
	axe.visits(kim, []visit{{path: "/signin?next=%2Faudit"}})
	kim.signInAtProvider("Sign in with Example University", "kim")
	kim.at("/audit")
	kim.sees("weir sign-in")
	kim.goTo("/account")
	kim.sees(provider.Issuer)
	kim.goTo("/people/1")
	kim.sees("administrator by group")
	axe.visits(kim, []visit{{path: "/account"}, {path: "/people/1"}, {path: "/people/1/identities/1/delete"}})

	kim.press("Sign out")
	kim.at("/signin")
	kim.acceptLanguage("zh-CN")
	kim.goTo("/signin")
	kim.allChinese(english, "sign-in with a provider")
	kim.signInAtProvider("使用 Example University 登录", "lee")
	kim.at("/signin/oidc/callback")
	kim.until("the reason", `document.querySelector(".summary") === document.activeElement`)
	kim.sees("不允许使用 lab.example.org 的邮箱地址登录。")
	kim.allChinese(english, "a refused sign-in with a provider")
	axe.load(kim)
	check(kim, "a refused sign-in with a provider")
	kim.signInAtProvider("使用 Example University 登录", "kim")
	kim.at("/")
	kim.watch.clean()
}

// signInAtProvider leaves by a button and signs in where that leads.
func (b *tab) signInAtProvider(button, who string) {
	b.t.Helper()
	b.press(button)
	b.until("the provider", `document.title === "The provider" && document.readyState === "complete"`)
	b.fill("User", who)
	b.fill("Password", openidtest.Password)
	b.press("Let me in")
}
