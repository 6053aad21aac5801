package files

import (
	"slices"

	"weir/models"
	"weir/policies"
	"weir/storage/rules"
)

// within reports whether a path is of the project or public: those of other projects
// are reached under these.
func (v *view) within(path string) bool {
	if rules.Within(path, rules.Notebook) {
		return rules.Within(path, rules.ProjectDir(v.project))
	}
	return true
}

// resolve returns the clean path in the layout.
func (v *view) resolve(path models.FilePath) (string, error) {
	clean, ok := rules.Clean(string(path))
	if !ok {
		return "", models.Invalid("path", "is not a valid path")
	}
	return rules.Resolve(v.user.DirectoryUser, clean), nil
}

// require returns the clean path if the user has the access to it. What the user cannot
// read does not exist.
func (v *view) require(path models.FilePath, access models.FileAccess) (string, error) {
	clean, err := v.resolve(path)
	if err != nil {
		return "", err
	}
	return clean, v.check(clean, access)
}

func (v *view) requireRead(path models.FilePath) (string, error) {
	return v.require(path, models.AccessRead)
}

func (v *view) check(path string, access models.FileAccess) error {
	if models.FilePath(path) == LostPath(v.project) {
		return v.checkLost(access)
	}
	switch have := v.user.Verdict(path).Access; {
	case !have.Includes(models.AccessRead) || !v.within(path):
		return models.NotFound("file")
	case !have.Includes(access):
		return models.Forbidden("The rules of the project do not allow you to change %s.", models.VisibleName(path))
	case access == models.AccessWrite:
		return checkScope(v.actor)
	}
	return nil
}

// checkLost is check for LostPath. Nobody knows whose it was and which rules held for it, so it is for those who make
// the rules.
func (v *view) checkLost(access models.FileAccess) error {
	if !v.Access.May(v.actor, v.project, policies.StorageWrite) {
		return models.NotFound("file")
	}
	if access == models.AccessWrite {
		return checkScope(v.actor)
	}
	return nil
}

// checkScope refuses to change files with an access token that may not open notebooks,
// which can change them too.
func checkScope(actor policies.Actor) error { return actor.CheckScope(policies.WorkspaceOpen) }

// requireDownload is require for bytes that leave the platform.
func (v *view) requireDownload(path models.FilePath) (string, error) {
	clean, err := v.require(path, models.AccessRead)
	if err == nil {
		err = v.checkDownload(clean)
	}
	return clean, err
}

func (v *view) checkDownload(path string) error {
	if v.user.Verdict(path).Download {
		return nil
	}
	return models.Forbidden("The rules of the project do not allow you to download %s.", models.VisibleName(path))
}

// checkStillDownload refuses unless the user may download a path, and all below it that
// could be downloaded before.
func (v *view) checkStillDownload(before *view, path string) error {
	if err := v.check(path, models.AccessRead); err != nil {
		return err
	}
	for _, p := range slices.Concat([]string{path}, before.user.Rules.Within(path), v.user.Rules.Within(path)) {
		if p == path || before.user.Verdict(p).Download {
			if err := v.checkDownload(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// requireChange is require for an entry that is created, replaced as a whole, or
// removed: the user must also have write access to its directory and to all that the
// rules treat differently in it.
func (v *view) requireChange(path models.FilePath) (string, error) {
	clean, err := v.require(path, models.AccessWrite)
	if err != nil {
		return clean, err
	}
	return clean, v.checkChange(clean)
}

func (v *view) checkChange(path string) error {
	if rules.Fixed(path) {
		return models.Forbidden("%s is part of the layout of the shared directories. Only the portal changes it.", models.VisibleName(path))
	}
	dir, _ := rules.Split(path)
	for _, p := range append([]string{dir, path}, v.user.Rules.Within(path)...) {
		if err := v.check(p, models.AccessWrite); err != nil {
			return err
		}
	}
	return nil
}

// checkKept is checkChange for the path of what is kept.
func (v *view) checkKept(path models.FilePath) error {
	if path == LostPath(v.project) {
		return v.check(string(path), models.AccessWrite)
	}
	return v.checkChange(string(path))
}

// checkNoRules refuses to move or delete paths that rules are about: elsewhere they
// would not hold.
func (v *view) checkNoRules(path string) error {
	if len(v.user.Rules.Within(path)) > 0 {
		return models.Conflict("There are rules about %s or about files in it. Delete these rules first.", models.VisibleName(path))
	}
	return nil
}
