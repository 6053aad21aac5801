package rules

import (
	"iter"
	"strings"
)

// Limits of Linux, in bytes.
const (
	MaxPath = 4095
	maxName = 255
)

// Clean returns the path without a trailing slash. It reports false for what is not an
// absolute path, and for paths with the names "", "." and "..", with NUL, or too long:
// they are refused, not resolved.
func Clean(path string) (string, bool) {
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return "/", true
	}
	if path[0] != '/' || len(path) > MaxPath {
		return "", false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if !ValidName(name) {
			return "", false
		}
	}
	return path, true
}

// ValidName reports whether a file can have the name: any bytes but '/' and NUL.
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxName && strings.IndexByte(name, '/') < 0 &&
		strings.IndexByte(name, 0) < 0
}

// Split returns the directory of a clean path, and the name in it.
func Split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

// Join returns the path of a name in a directory.
func Join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// Within reports whether path is dir or below it. Both are clean.
func Within(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/' || dir == "/")
}

// upwards yields a clean path and the directories above it, the deepest first, without
// the root.
func upwards(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(path) > 1 && yield(path) {
			path = path[:strings.LastIndexByte(path, '/')]
		}
	}
}
