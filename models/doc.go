// Package models contains what all packages speak of: types, decisions, errors, texts in
// every language, and permissions.
//
// It must not know where they are stored (models/store), who may do what (policies), how
// decisions are made (pool, workspaces), nor of HTTP more than the status that a kind of
// error has and which addresses stay on an origin. It imports the standard library only.
package models
