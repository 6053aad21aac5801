// Package authority is Weir's own certificate authority for agents: it keeps
// the authority's key in one file, issues the listener's certificate and those
// of agents, and makes and reads the codes with which an agent enrols.
//
// A code holds a secret and the authority's fingerprint. An agent that has
// only the code can therefore tell the portal from somebody else in its place
// before the secret leaves the machine.
//
// It must not know the database, HTTP, nor what an agent may do: whether a
// certificate is still good is asked of the service for every request.
package authority
