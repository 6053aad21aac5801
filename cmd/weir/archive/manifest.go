package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Format is the version of the format that this package writes and reads.
const Format = 1

// Names of entries.
const (
	manifestName = "manifest.json"
	endName      = "end.json"
	SharedDir    = "shared"
)

const (
	maxDocument = 1 << 20 // bytes of manifest.json and end.json
	maxFiles    = 100     // in the manifest
)

// Manifest says what a backup is of.
type Manifest struct {
	Format       int       `json:"format"`
	Version      string    `json:"version"` // of the program that made it
	Schema       int64     `json:"schema"`  // version of the database
	Database     string    `json:"database"`
	Installation string    `json:"installation"`
	Generation   int64     `json:"generation"`
	CreatedAt    time.Time `json:"created_at"`
	Files        []File    `json:"files"`
	Shared       bool      `json:"shared"` // the shared directories follow
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"` // slash-separated
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// End is the last entry.
type End struct {
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"` // of their content
	SHA256  string `json:"sha256"`
}

func (m Manifest) check() error {
	if m.Format != Format {
		return fmt.Errorf("it has format %d, this program reads format %d: use the program of version %q", m.Format, Format, m.Version)
	}
	if len(m.Files) > maxFiles {
		return damaged("its manifest names %d files, at most %d are allowed", len(m.Files), maxFiles)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		switch {
		case !plain(f.Name), f.Name == manifestName, f.Name == endName, isShared(f.Name):
			return damaged("its manifest names a file %q", f.Name)
		case f.Size < 0 || seen[f.Name]:
			return damaged("its manifest is wrong about %q", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// plain reports whether a name is one below a directory, in only one spelling.
func plain(name string) bool {
	return filepath.IsLocal(name) && path.Clean(name) == name && name != "." && !strings.Contains(name, "\x00")
}

// isShared reports whether a name is SharedDir or below it.
func isShared(name string) bool { return name == SharedDir || strings.HasPrefix(name, SharedDir+"/") }

// damaged is an error of an archive that Write has not made, or not like this.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the archive is damaged: "+format, args...)
}

// describe returns the entry of the manifest for a file.
func describe(name, file string) (File, error) {
	f, err := os.Open(file)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return File{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// digest counts and hashes entries, in their order.
type digest struct {
	sum hash.Hash
	End
}

func newDigest() *digest { return &digest{sum: sha256.New()} }

// begin adds the header of an entry; its content is then written to the digest.
func (d *digest) begin(kind byte, name, link string, mode, size int64) {
	d.Entries++
	d.Bytes += size
	fmt.Fprintf(d.sum, "%c %q %q %o %d\n", kind, name, link, mode, size)
}

func (d *digest) Write(b []byte) (int, error) { return d.sum.Write(b) }

func (d *digest) end() End {
	e := d.End
	e.SHA256 = hex.EncodeToString(d.sum.Sum(nil))
	return e
}

func decode(r io.Reader, size int64, into any) error {
	if size > maxDocument {
		return damaged("its manifest has %d bytes, at most %d are allowed", size, maxDocument)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return damaged("its manifest cannot be read: %w", err)
	}
	return nil
}
