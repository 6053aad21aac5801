// Package quota is the two sums that always hold, for each resource:
//
//  1. the limits of a project's members, together, are at most its quota;
//  2. what a member has in use is at most the limit of the member's role, and
//     what a project has in use is at most its quota.
//
// It tells what breaks them and by how much; who asks words it. It must not
// know a database, nor who may do what.
package quota
