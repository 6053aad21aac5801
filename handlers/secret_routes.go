package handlers

// hasSecrets reports whether the responses of a route may contain a secret.
func hasSecrets(route string) bool {
	switch route {
	case "/projects/start", "/api/v1/projects/start", "/projects/:id/members/:member/tokens", "/api/v1/projects/:id/members/:member/tokens",
		"/invitations", "/projects/:id/invitations", "/people/:id/password-link",
		"/api/v1/invitations", "/api/v1/projects/:id/invitations", "/api/v1/users/:id/password-link",
		"/account/second-factor/confirm", "/account/second-factor/recovery-codes", "/signin/second-factor/confirm",
		"/account/passkeys", "/account/passkeys/new", "/api/v1/me/passkeys/ceremony", "/signin/passkey/ceremony",
		"/api/v1/me/second-factor", "/api/v1/me/second-factor/confirm", "/api/v1/me/second-factor/recovery-codes",
		"/pool/providers", "/api/v1/pool/authorizations", "/tokens", "/api/v1/tokens", "/api/v1/workspaces/:id/open",
		"/webhooks", "/webhooks/:id/rotate", "/api/v1/webhooks", "/api/v1/webhooks/:id/rotate":
		return true
	}
	return false
}
