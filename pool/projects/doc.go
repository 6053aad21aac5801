// Package projects manages projects with their quotas, roles with their limits, and
// members, and shows their usage. Its service checks permissions and the two rules
// of package quota, and commits in one transaction. An Editor makes the same
// changes within another transaction.
//
// It must not know machines, the queue, what a share is used for, nor HTTP.
package projects
