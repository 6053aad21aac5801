// Package authority is the certificate authority of the agents. Its key is in one
// file. It issues the certificates of the listener and of agents, and the
// authorization codes with which agents enroll.
//
// A code contains a secret and the authority's fingerprint, so that an agent
// authenticates the portal before it sends the secret.
//
// It must not know the database, HTTP, nor what an agent may do: whether a
// certificate was revoked is checked by the service at each request.
package authority
