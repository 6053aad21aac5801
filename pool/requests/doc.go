// Package requests manages requests and their decisions, and notifies people of the
// ends of projects and memberships. An approval makes the requested change through
// package projects, in the transaction of the decision.
//
// It must not know how a change is made, nor HTTP.
package requests
