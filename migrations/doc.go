// Package migrations carries the schema, as append-only SQL with the same
// numbers for SQLite and PostgreSQL, and applies it with goose.
//
// It must not know what the tables mean.
package migrations
