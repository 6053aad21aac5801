// Package handlers is the HTTP face of Weir: routes, binding, sessions, and
// the mapping of errors to responses, HTML and REST side by side. A handler
// binds its input, calls one method of one service, and renders.
//
// It must not decide anything: who may do what, and what follows from it, is
// the services' business.
package handlers
