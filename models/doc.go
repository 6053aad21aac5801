// Package models contains the types, the errors, and the gorm queries and
// transactions that read and write them, on SQLite and PostgreSQL.
//
// It must not know actors or their rights (policies), how decisions are made
// (pool, workspaces), nor HTTP. Every query on something that belongs to a
// project takes a [Scope]; the zero Scope matches nothing.
package models
