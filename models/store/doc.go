// Package store reads and writes the types of package models on SQLite and PostgreSQL:
// transactions (transactions.go), queries by noun (NOUN_queries.go), and what servers on
// one database agree on: the leader (leader.go), their leases (server_lease.go),
// revocations (revocation.go) and caches that follow them (cache.go).
//
// It must not know actors or their rights (policies), how decisions are made (pool,
// workspaces), nor HTTP. Every query on something that belongs to a project takes a
// [Scope]; the zero Scope matches nothing.
package store
