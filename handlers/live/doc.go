// Package live sends browsers the names of the topics that have changed, as
// server-sent events, on one stream for each open page. The page then fetches
// the changed content with its own permissions.
//
// It does not depend on how the permission to follow a topic is decided.
package live
