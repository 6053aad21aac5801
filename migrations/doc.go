// Package migrations contains the schema, as append-only SQL with the same
// numbers for SQLite and PostgreSQL, and applies it with goose.
//
// It must not know the meaning of the tables.
package migrations
