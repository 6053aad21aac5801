// Package proxy connects browsers and programs with running notebooks. Every
// workspace has its own origin, ws-{id}.{apps domain}. A visitor has a single-use
// token of the portal, or a personal token, and a [Gate] admits each request.
//
// Notebooks run untrusted code, so the proxy isolates them: the visitor's
// credentials for Weir never reach a notebook, a notebook's response affects only
// its own cookies and pages, and no other site can act on a notebook through its
// visitor's browser.
//
// It must not know who the visitor is, what a project or a permission is, where
// notebooks run, nor the database: the Gate decides all of that.
//
// The proxy removes the server's ReadTimeout and WriteTimeout from the requests
// that it forwards.
package proxy
