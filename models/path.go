package models

import (
	"net/url"
	"strings"
	"unicode"
)

// isLocalPath reports whether a browser that is redirected to path stays on its
// origin.
func isLocalPath(path string) bool {
	u, err := url.Parse(path)
	return err == nil && !strings.ContainsFunc(path, unicode.IsControl) && // browsers ignore them
		u.Scheme == "" && u.Host == "" && strings.HasPrefix(path, "/") &&
		!strings.HasPrefix(path, "//") && !strings.HasPrefix(u.Path, "//") && !strings.Contains(path, `\`)
}

// MaxPagePath is the maximum length of a path of a page to open, in bytes.
const MaxPagePath = 2000

// IsPagePath reports whether path can be the page of a workspace to open.
func IsPagePath(path string) bool { return len(path) <= MaxPagePath && isLocalPath(path) }

// LocalPath returns path for a redirect, or "/" if it leaves the origin.
func LocalPath(path string) string {
	if !isLocalPath(path) {
		return "/"
	}
	return path
}
