package storage

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// Access is what a member can do with a directory and everything below it.
type Access int

// Levels of access, in ascending order.
const (
	None Access = iota // as if it did not exist
	Read
	ReadWrite
)

// AccessTo returns the access of a member to a path in workspaces, such as
// /notebook/5/project_model/a.bin. It applies to the portal and to the mounts.
//
// Members have write access to their project's directories, to their own, and to
// those of former members that were handed over to them, until the end of the
// project's period of use or of their membership. The public directories are
// read-only.
func AccessTo(h models.DirectoryUser, name string) Access {
	name = path.Clean("/" + name)
	if name == HomeDir || strings.HasPrefix(name, HomeDir+"/") {
		return writeAccess(h)
	}
	parts := strings.Split(name[1:], "/")
	switch {
	case slices.Contains(publicDirs, parts[0]):
		return Read
	case parts[0] != notebookDir || len(parts) < 2 || parts[1] != strconv.FormatInt(h.ProjectID, 10):
		return None
	case len(parts) == 2: // only the portal creates entries in it
		return Read
	case slices.Contains(projectDirs, parts[2]), parts[2] == strconv.FormatInt(h.MemberID, 10),
		slices.ContainsFunc(h.Inherits, func(id int64) bool { return parts[2] == strconv.FormatInt(id, 10) }):
		return writeAccess(h)
	default:
		return Read
	}
}

// writeAccess is ReadWrite unless the project or the membership has ended.
func writeAccess(h models.DirectoryUser) Access {
	if h.Ended || h.Left {
		return Read
	}
	return ReadWrite
}
