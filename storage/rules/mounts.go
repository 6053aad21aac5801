package rules

import (
	"iter"
	"slices"

	"weir/models"
)

// Kind is what is at a path.
type Kind int

const (
	Missing Kind = iota
	File         // or anything else that is not a directory
	Directory
	Replaceable // a directory that could be another one when it is mounted
)

// Mount is a directory that a workspace mounts over what is mounted at the directories
// above it.
type Mount struct {
	Path   string
	Access models.FileAccess // AccessNone: an empty directory hides it
}

// Limitation is a path at which a mount cannot express the verdict. It also holds for
// what is below the path.
type Limitation struct {
	Path    models.FilePath   `json:"path" doc:"percent-encoded path"`
	Access  models.FileAccess `json:"access" enum:"none,read,write" doc:"by the rules"`
	Mounted models.FileAccess `json:"mounted" enum:"none,read,write" doc:"in the workspace"`
	Reason  LimitationReason  `json:"reason" enum:"file,missing,hidden,replaceable,download" doc:"file: a rule on a single file; missing: nothing was there; hidden: a directory above is hidden; replaceable: in a cluster, directories that members can replace are not mounted, and hidden if the rules give less than what is mounted above; download: a notebook can copy what it can read"`
}

// LimitationReason is why a mount cannot express a verdict.
type LimitationReason string

const (
	OfFile      LimitationReason = "file"     // a rule on a single file
	OfMissing   LimitationReason = "missing"  // it did not exist
	WhileHidden LimitationReason = "hidden"   // a directory above it is hidden
	OfDownload  LimitationReason = "download" // a notebook can copy what it can read
	// OfReplaceable: it can be replaced before it is mounted.
	OfReplaceable LimitationReason = "replaceable"
)

// PlanMounts returns the fewest mounts that give each directory its access and keep it in
// its place, parents first, and where they cannot. boundaries are the sorted paths at which
// the verdict can differ from that of the directory above.
//
// A notebook cannot move a directory where something is mounted, but those above it: so in
// a directory that can be written, what leads to one with less access is mounted as well.
func PlanMounts(boundaries []string, verdict func(path string) Verdict, kind func(path string) Kind) (mounts []Mount, limits []Limitation) {
	at := map[string]models.FileAccess{}
	for _, path := range boundaries {
		v, above := verdict(path), mountedAbove(at, path)
		mounted := models.AccessNone
		if above != "" {
			mounted = at[above]
		}
		if v.Access != mounted {
			add := func(path string, access models.FileAccess) {
				at[path] = access
				mounts = append(mounts, Mount{path, access})
			}
			switch reason := obstacle(above != "" && mounted == models.AccessNone, kind(path)); {
			case reason == "":
				if mounted == models.AccessWrite {
					for dir := range between(above, path) {
						add(dir, mounted)
					}
				}
				add(path, v.Access)
				mounted = v.Access
			case reason == OfReplaceable && mounted.Includes(v.Access):
				add(path, models.AccessNone)
				if mounted = models.AccessNone; v.Access != mounted {
					limits = append(limits, Limitation{models.FilePath(path), v.Access, mounted, reason})
				}
			default:
				limits = append(limits, Limitation{models.FilePath(path), v.Access, mounted, reason})
			}
		}
		if !v.Download && v.Access.Includes(models.AccessRead) {
			limits = append(limits, Limitation{models.FilePath(path), v.Access, mounted, OfDownload})
		}
	}
	return mounts, limits
}

// obstacle is why no mount is possible, or "".
func obstacle(hidden bool, kind Kind) LimitationReason {
	switch {
	case kind == File:
		return OfFile
	case kind == Missing:
		return OfMissing
	case hidden:
		return WhileHidden
	case kind == Replaceable:
		return OfReplaceable
	default:
		return ""
	}
}

// between lists the directories below one and above a path in it, parents first.
func between(above, path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := len(above) + 1; i < len(path); i++ {
			if path[i] == '/' && !yield(path[:i]) {
				return
			}
		}
	}
}

// mountedAbove is the nearest directory above a path that is mounted, or "".
func mountedAbove(at map[string]models.FileAccess, path string) string {
	for dir := range upwards(path) {
		if _, ok := at[dir]; ok && dir != path {
			return dir
		}
	}
	return ""
}

// Limited reports whether a path is at or below one of the limitations.
func Limited(limits []Limitation, path string) bool {
	return slices.ContainsFunc(limits, func(l Limitation) bool { return Within(path, string(l.Path)) })
}
