package storage

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"weir/models"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// MountPlan is the mounts of a member's workspace, parents before children, what the rules
// give the member, and the paths at which the mounts cannot express that.
type MountPlan struct {
	Mounts      []models.Mount
	FileAccess  []models.PathAccess
	Limitations []rules.Limitation
}

// EnsureMounts returns the mounts of a member's workspace, parents before children, and
// what the rules give the member; it creates missing directories.
func (d *Directories) EnsureMounts(ctx context.Context, h models.DirectoryUser) ([]models.Mount, []models.PathAccess, error) {
	if err := d.MakeProject(ctx, h.ProjectID); err != nil {
		return nil, nil, err
	}
	for _, member := range append([]int64{h.MemberID}, h.Inherits...) {
		if err := d.MakeMember(ctx, h.ProjectID, member); err != nil {
			return nil, nil, err
		}
	}
	plan, err := d.MountPlan(ctx, h)
	return plan.Mounts, plan.FileAccess, err
}

// Withdrawn returns a directory to which the rules give a member less access than they
// gave before; "" if there is none. What is no directory does not count, since no mount
// expresses its rules, and neither does a storage limit that is exceeded.
func (d *Directories) Withdrawn(ctx context.Context, h models.DirectoryUser, access []models.PathAccess) (models.FilePath, error) {
	user, err := d.verdicts.Of(ctx, h)
	if err != nil {
		return "", err
	}
	root, err := beneath.OpenRoot(d.root, beneath.Owner{})
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, path := range rules.Withdrawn(access, rules.Granted(user.Rules.Boundaries(h), user.Verdict, everywhere)) {
		if kind, err := kindOf(root, path); err != nil || kind == rules.Directory { // what cannot be looked at may be one
			return models.FilePath(path), nil
		}
	}
	return "", nil
}

func everywhere(string) bool { return true }

// MountPlan returns the mounts of a member's workspace that starts now.
func (d *Directories) MountPlan(ctx context.Context, h models.DirectoryUser) (p MountPlan, err error) {
	user, err := d.verdicts.Of(ctx, h)
	if err != nil {
		return p, err
	}
	root, err := beneath.OpenRoot(d.root, beneath.Owner{})
	if err != nil {
		return p, err
	}
	defer root.Close()
	layout, present := map[string]bool{}, map[string]bool{} // directories: created by EnsureMounts, and others
	for _, dir := range rules.NewSet(h.ProjectID, nil).Boundaries(h) {
		layout[dir] = true
	}
	var failed error
	verdict := func(path string) rules.Verdict { return user.Verdict(path).Mounted() }
	mounts, limits := rules.PlanMounts(user.Rules.Boundaries(h), verdict, func(path string) rules.Kind {
		if layout[path] {
			return rules.Directory
		}
		kind, err := kindOf(root, path)
		failed, present[path] = errors.Join(failed, err), kind == rules.Directory
		if kind == rules.Directory && d.FollowsLinks {
			kind = rules.Replaceable
		}
		return kind
	})
	if failed != nil {
		return p, failed
	}
	p.Limitations = limits
	p.FileAccess = rules.Granted(user.Rules.Boundaries(h), user.Verdict, func(path string) bool { return layout[path] || present[path] })
	own := rules.MemberDir(h.ProjectID, h.MemberID)
	for _, m := range mounts {
		p.Mounts = append(p.Mounts, d.mount(m, m.Path))
	}
	p.Mounts = append(p.Mounts, d.homeMounts(mounts, own, verdict(own).Access)...)
	return p, nil
}

// homeMounts mounts the own directory, with what is mounted in it, a second time.
func (d *Directories) homeMounts(mounts []rules.Mount, own string, access models.FileAccess) []models.Mount {
	list := []models.Mount{d.mount(rules.Mount{Path: own, Access: access}, rules.HomeDir)}
	for _, m := range mounts {
		if m.Path != own && rules.Within(m.Path, own) {
			list = append(list, d.mount(m, rules.HomeDir+m.Path[len(own):]))
		}
	}
	return list
}

func (d *Directories) mount(m rules.Mount, target string) models.Mount {
	source := m.Path
	if m.Access == models.AccessNone {
		source = EmptyDir
	}
	return models.Mount{Source: filepath.Join(d.root, source), Target: target, ReadOnly: m.Access != models.AccessWrite}
}

// kindOf is what is at a path of the layout. What cannot be looked at is an error: a
// directory in it could have to be hidden.
func kindOf(root *beneath.Root, path string) (rules.Kind, error) {
	dir, name := rules.Split(path)
	parent, err := root.Dir(strings.TrimPrefix(dir, "/"))
	if errors.Is(err, fs.ErrPermission) {
		return rules.Missing, models.Unavailable(err, "The permissions of a directory above %s do not let Weir read it. Give the owner all permissions with chmod.", models.VisibleName(path))
	}
	if err != nil {
		return rules.Missing, nil
	}
	defer parent.Close()
	switch info, err := parent.Stat(name); {
	case err != nil:
		return rules.Missing, nil
	case info.Kind == beneath.Directory:
		return rules.Directory, nil
	default:
		return rules.File, nil
	}
}
