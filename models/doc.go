// Package models holds what Weir remembers: its types, its errors, and the
// gorm queries and transactions that read and write them, on SQLite and on
// PostgreSQL alike.
//
// It must not know who is asking or whether they may (policies), what a
// decision should be (pool, workspaces), nor HTTP. Every query on something
// that belongs to a project takes a [Scope]; the zero Scope sees nothing.
package models
