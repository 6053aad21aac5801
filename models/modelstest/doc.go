// Package modelstest gives tests a real PostgreSQL: one server for each test
// process, one fresh database for each call.
//
// It must not know Weir's schema, and nothing but tests may import it.
package modelstest
