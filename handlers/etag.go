package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// revalidate adds an ETag to JSON and calendars in responses of GET and answers 304 without a body if the
// client has that representation. The handler runs in either case, so that permissions
// are checked first.
func (a *App) revalidate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().Method != http.MethodGet {
			return next(c)
		}
		res := c.Response()
		w := &heldWriter{ResponseWriter: res.Writer}
		res.Writer = w
		err := next(c)
		res.Writer = w.ResponseWriter
		if err != nil || !w.held {
			return err
		}
		tag := representationTag(w.Header().Get("ETag"), w.body.Bytes())
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "private, no-cache")
		if namesTag(c.Request().Header.Values("If-None-Match"), tag) {
			w.Header().Del("Content-Type")
			res.Status = http.StatusNotModified
			w.ResponseWriter.WriteHeader(res.Status)
			return nil
		}
		w.ResponseWriter.WriteHeader(http.StatusOK)
		_, err = w.ResponseWriter.Write(w.body.Bytes())
		return err
	}
}

// heldWriter holds JSON and calendars with the status 200; other responses pass through.
type heldWriter struct {
	http.ResponseWriter
	held bool
	body bytes.Buffer
}

func (w *heldWriter) WriteHeader(status int) {
	kind := w.Header().Get("Content-Type")
	if w.held = status == http.StatusOK && (strings.HasSuffix(kind, "json") || strings.HasPrefix(kind, "text/calendar")); !w.held {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *heldWriter) Write(p []byte) (int, error) {
	if w.held {
		return w.body.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// representationTag is "VERSION-HASH" for the ETag of a version, and "HASH" for none. The
// hash covers what changes without a new version, such as resources in use. Another ETag
// is of the content itself and stays.
func representationTag(tag string, body []byte) string {
	version := strings.Trim(tag, `"`)
	if _, err := strconv.ParseUint(version, 10, 64); err != nil && tag != "" {
		return tag
	}
	if version != "" {
		version += "-"
	}
	hash := sha256.Sum256(body)
	return `"` + version + hex.EncodeToString(hash[:12]) + `"`
}

// namesTag reports whether an If-None-Match header names an ETag. The comparison is weak,
// as RFC 9110 says.
func namesTag(header []string, tag string) bool {
	for _, named := range strings.Split(strings.Join(header, ","), ",") {
		if named = strings.TrimPrefix(strings.TrimSpace(named), "W/"); named == tag || named == "*" {
			return true
		}
	}
	return false
}

// weakenETags makes the ETag of a compressed response weak, as its bytes are not those
// that the ETag names. It precedes compress.
func weakenETags(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Writer = weakeningWriter{c.Response().Writer}
		return next(c)
	}
}

type weakeningWriter struct{ http.ResponseWriter }

func (w weakeningWriter) WriteHeader(status int) {
	h := w.Header()
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) && h.Get("Content-Encoding") != "" {
		h.Set("ETag", "W/"+tag)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w weakeningWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
