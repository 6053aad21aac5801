package rules

import (
	"maps"
	"slices"

	"weir/models"
)

// Granted returns the access that a verdict gives, as the fewest paths, parents first:
// those of the boundaries at which it differs from that of the directory above. More access
// to what does not exist is not given: nothing can be mounted there.
func Granted(boundaries []string, verdict func(path string) Verdict, exists func(path string) bool) (list []models.PathAccess) {
	at := map[string]models.FileAccess{}
	for _, path := range boundaries {
		access, above := verdict(path).Access, accessAt(at, path)
		if access != above && (above.Includes(access) || exists(path)) {
			at[path] = access
			list = append(list, models.PathAccess{Path: models.FilePath(path), Access: access})
		}
	}
	return list
}

// Withdrawn lists the paths, parents first, from which on now gives less access than before.
func Withdrawn(before, now []models.PathAccess) (list []string) {
	was, is := byPath(before), byPath(now)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if !accessAt(is, path).Includes(accessAt(was, path)) {
			list = append(list, path)
		}
	}
	return list
}

func byPath(list []models.PathAccess) map[string]models.FileAccess {
	at := map[string]models.FileAccess{}
	for _, g := range list {
		at[string(g.Path)] = g.Access
	}
	return at
}

// accessAt is the access at the nearest directory at or above a path; without one, none.
func accessAt(at map[string]models.FileAccess, path string) models.FileAccess {
	for dir := range upwards(path) {
		if access, ok := at[dir]; ok {
			return access
		}
	}
	return models.AccessNone
}
