package storage

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// Verdict is what somebody may do in a directory and all below it.
type Verdict int

// Verdicts, each with the one before.
const (
	None Verdict = iota // it does not exist for them
	Read
	ReadWrite
)

// VerdictOn is what a holder may do at a path as workspaces see it, such as
// /notebook/5/project_model/a.bin. It is the same for the portal, the file service and the mounts.
//
// Members write in their project's directories, in their own, and in those of
// members who have left that were handed to them. When the project's period of
// use is over nothing in it is written any more, and who has left writes
// nowhere. The public directories are read.
func VerdictOn(h models.Holder, name string) Verdict {
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
	case len(parts) == 2: // only the portal creates what is in it
		return Read
	case slices.Contains(projectDirs, parts[2]), parts[2] == strconv.FormatInt(h.MemberID, 10):
		return writeAccess(h)
	case slices.ContainsFunc(h.Inherits, func(id int64) bool { return parts[2] == strconv.FormatInt(id, 10) }):
		return writeAccess(h)
	default:
		return Read
	}
}

// writeAccess is the verdict where the holder writes, unless the project or the membership has ended.
func writeAccess(h models.Holder) Verdict {
	if h.Ended || h.Left {
		return Read
	}
	return ReadWrite
}
