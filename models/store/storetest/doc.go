// Package storetest provides real databases to tests: a migrated
// [store.Store] on SQLite and on PostgreSQL, with one PostgreSQL server for
// each test process and a fresh database for each call. It also has a clock
// that tests control, and helpers for concurrent calls.
//
// It must not know the services, and nothing but tests may import it.
package storetest
