package models

import (
	"net/url"
	"strings"
)

// IsLocalPath reports whether a browser that is redirected to path stays on its
// origin.
func IsLocalPath(path string) bool {
	u, err := url.Parse(path) // refuses control characters, which browsers ignore
	return err == nil && u.Scheme == "" && u.Host == "" && strings.HasPrefix(path, "/") &&
		!strings.HasPrefix(path, "//") && !strings.HasPrefix(u.Path, "//") && !strings.Contains(path, `\`)
}

// LocalPath returns path for a redirect, or "/" if it leaves the origin.
func LocalPath(path string) string {
	if !IsLocalPath(path) {
		return "/"
	}
	return path
}
