// Package fsquota sets project quotas of Linux file systems: directories with all that
// is created in them count for a project, and the kernel refuses writes beyond its limit.
// XFS has them, mounted with prjquota, and ext4 with the features quota and project.
//
// Limits need root and Linux 5.14. It must not know Weir's projects.
package fsquota
