// Package providers is the lending side of the pool: machines and their
// devices. It lets their agents in by an authorization code or by a cluster's
// word, takes their heartbeats, and shuts them out; it keeps the inventory,
// the owners' terms, the ways of sharing, and what is measured.
//
// It must not know who is given which share, nor what projects may use: it
// reads who holds shares only to tell them what becomes of their devices.
package providers
