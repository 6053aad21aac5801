// Package projects keeps projects with their quotas, roles with their limits,
// and members, and shows what they use. Its service checks who is asking,
// holds the two sums of package quota, and commits in one transaction; others
// make the same changes within theirs through an Editor.
//
// It must not know machines, who waits for them, what a share is used for, nor
// HTTP.
package projects
