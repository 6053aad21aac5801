package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed static
var staticFiles embed.FS

// staticHash names this build's static files: when any of them changes, all
// addresses change, and so browsers may keep them for ever.
var staticHash = hashFiles(staticFiles)

func hashFiles(files fs.FS) string {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, path)
		h.Write([]byte(path))
		h.Write(b)
		return err
	})
	if err != nil {
		panic("web: static files: " + err.Error())
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// Asset is the address of a static file.
func Asset(name string) string { return "/static/" + staticHash + "/" + name }

func staticSub() fs.FS {
	sub, err := fs.Sub(staticFiles, "static")
	if err != nil {
		panic("web: static files: " + err.Error())
	}
	return sub
}

// Static serves everything under /static/. A page of another build requests another
// hash: it gets the current file, but must not cache it.
func Static() http.Handler {
	files := http.FileServerFS(staticSub())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hash, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/static/"), "/")
		if !ok || name == "" || strings.HasSuffix(name, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if hash == staticHash {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			w.Header().Set("Cache-Control", "no-cache")
		}
		r2 := r.Clone(r.Context())
		r2.URL.Path = "/" + name
		files.ServeHTTP(w, r2)
	})
}
