package web

// SetupView is the form of the first administrator.
type SetupView struct {
	Form  Form // email, name, password, password_again
	Token string
}

// SignInView is the sign-in form.
type SignInView struct {
	Form     Form // email, password
	Next     string
	Provider string // the identity provider; empty: none
	Refused  Form   // why the provider did not
	Passkey  PasskeyButton
}
