// Package proxy connects browsers and programs with running notebooks. Every
// workspace answers on an origin of its own, ws-{id}.{apps domain}; a visitor
// comes in with a single-use token from the portal, or with a personal token,
// and each request is admitted anew by a [Gate].
//
// Notebooks run code that nobody here has read, so the proxy stands between
// them and everything else: what identifies the visitor to Weir never reaches
// a notebook, what a notebook answers can touch no cookie and no page but its
// own, and no other site may act on a notebook through its visitor's browser.
//
// It must not know who the visitor is, what a project or a right is, where
// notebooks run, nor the database: it asks the Gate, and goes only where the
// Gate says.
//
// The server in front may set ReadTimeout and WriteTimeout for its other
// pages; the proxy lifts both for what it forwards.
package proxy
