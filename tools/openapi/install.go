package openapi

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// ErrUnreachable is that npm cannot get the programs from its registry.
var ErrUnreachable = errors.New("the npm registry cannot be reached")

var networkCode = regexp.MustCompile(`npm (?:error|ERR!) code (?:E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH|\d{3})|ERR_SOCKET_TIMEOUT)`)

//go:embed package.json package-lock.json
var manifest embed.FS

// Install returns the directory with node_modules of the programs in the user's cache.
// The first call installs them with npm, or returns an ErrUnreachable.
func Install(ctx context.Context) (dir string, err error) {
	lock, err := manifest.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent, sum := filepath.Join(cache, "weir"), sha256.Sum256(lock)
	dir = filepath.Join(parent, "openapi-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	// Tests of several packages may install at once: each installs on its own, and the
	// first rename wins.
	fresh, err := os.MkdirTemp(parent, "openapi-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := os.CopyFS(fresh, manifest); err != nil {
		return "", err
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); networkCode.Match(out) {
		return "", fmt.Errorf("%w:\n%s", ErrUnreachable, out)
	} else if err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// Program is the path of an installed program, such as redocly.
func Program(dir, name string) string { return filepath.Join(dir, "node_modules", ".bin", name) }
