// Package modelstest gives tests real databases: a migrated [models.Store] on
// SQLite and on PostgreSQL, of which it runs one server for each test process,
// with one fresh database for each call. Beside them are the few things that
// tests of every service need: a clock that stands still, and many callers at
// once.
//
// It must not know what the services do, and nothing but tests may import it.
package modelstest
