// Package models contains what all packages speak of: types, decisions, errors, texts in
// every language, and permissions.
//
// It must not know where they are stored (models/store), who may do what (policies), how
// decisions are made (pool, workspaces), nor HTTP. It imports the standard library only.
package models
