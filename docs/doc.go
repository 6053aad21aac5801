// Package docs is the documentation as the portal serves it: Markdown pages rendered to
// safe HTML, their list and their search.
//
// It must not know who reads.
package docs
