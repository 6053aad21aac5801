// Package quota computes the two rules of quotas, for each resource:
//
//  1. the sum of the limits of a project's members is at most its quota;
//  2. the use of a member is at most the limit of the member's role, and the use of
//     a project is at most its quota.
//
// It returns by how much a change would break them, and fills in the amounts of a
// quota or limit that are left open. It must not know the database,
// nor permissions.
package quota
