// Package handlers is the HTTP face of Weir: routes, binding, sessions, and
// the mapping of errors to responses, HTML and REST side by side. A handler
// binds its input, calls one method of a service, and renders; a page that shows
// several lists calls one method for each.
//
// Files are named by noun: workspaces_pages.go has the portal's pages of
// workspaces, whose handlers end in Page, and workspaces_api.go their twins in
// the REST API, which are called by the id of the operation. Each begins with
// its routes; routes.go and openapi.go list the nouns.
//
// It decides nothing: services check permissions and return what pages may offer.
package handlers
