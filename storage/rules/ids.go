package rules

import "weir/models"

// IDRange is the numeric IDs for members and projects on the file system. They follow
// from the numbers that also name the directories: those are never used again, so no file
// gets to somebody else. The zero value has none.
type IDRange struct{ First, Last int64 }

// Empty reports whether the range has no IDs.
func (r IDRange) Empty() bool { return r == IDRange{} }

// Contains reports whether an ID is in the range.
func (r IDRange) Contains(id int64) bool { return !r.Empty() && r.First <= id && id <= r.Last }

// User is the user ID of a member.
func (r IDRange) User(member int64) (int64, error) { return r.at(member) }

// Member is the member with a user ID; 0: none.
func (r IDRange) Member(user int64) int64 {
	if !r.Contains(user) {
		return 0
	}
	return user - r.First
}

// Group is the group ID of a project.
func (r IDRange) Group(project int64) (int64, error) { return r.at(project) }

func (r IDRange) at(n int64) (int64, error) {
	if id := r.First + n; n > 0 && r.Contains(id) {
		return id, nil
	}
	return 0, models.Conflict("All IDs for files are used. An administrator must extend the setting id-range.")
}

// Attributes are the owner and the permissions of a file or directory.
type Attributes struct {
	UID, GID int64
	Mode     uint32 // permissions, with those for setting IDs
}

// Owners decides who owns the files of a project.
type Owners struct {
	Range IDRange
	UID   int64 // of what belongs to no member
}

// setGroupID makes what is created in a directory belong to its group.
const setGroupID = 0o2000

// Attributes returns what the attributes of a path in a project's directory, which are
// is, should be. The group can do what the owner can: who sees a directory, and whether
// it can be written, is a matter of the mounts. In a member's own directory, a file that
// is closed to the group stays so.
func (o Owners) Attributes(project int64, path string, kind Kind, is Attributes) (Attributes, error) {
	group, err := o.Range.Group(project)
	if err != nil {
		return is, err
	}
	owner, member := o.UID, MemberOf(project, path)
	if member != 0 {
		if owner, err = o.Range.User(member); err != nil {
			return is, err
		}
	}
	switch above, _ := Split(path); {
	case path == ProjectDir(project):
		return Attributes{o.UID, group, setGroupID | 0o750}, nil
	case above == ProjectDir(project):
		return Attributes{owner, group, setGroupID | 0o770}, nil
	}
	want := Attributes{is.UID, group, is.Mode & 0o777}
	if !o.Range.Contains(is.UID) {
		want.UID = owner
	}
	if kind == Directory {
		want.Mode |= setGroupID
	}
	if kind == Directory || member == 0 || is.Mode&0o070 != 0 {
		want.Mode |= is.Mode & 0o700 >> 3
	}
	return want, nil
}
