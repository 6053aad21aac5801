package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/storage/files"
)

func (a rest) fileContentOperations(s section) {
	const content, archive, version = "/projects/{id}/files/content", "/projects/{id}/files/archive",
		"/projects/{id}/files/versions/{version}/content"
	conditions := []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable}
	register(a, s, route{http.MethodGet, content, 200, "download-file", models.Say("Download a file; supports ranges and conditions")},
		a.downloadFile, conditions...)
	register(a, s, route{http.MethodPut, content, 200, "upload-file", models.Say("Create or replace a file; the body is its content")},
		a.uploadFile)
	register(a, s, route{http.MethodGet, version, 200, "download-file-version", models.Say("Download an overwritten version of a file")},
		a.downloadFileVersion, conditions...)
	register(a, s, route{http.MethodGet, archive, 200, "download-archive", models.Say("Download a directory as an archive")},
		a.downloadArchive, http.StatusConflict)
	register(a, s, route{http.MethodPut, archive, 200, "upload-archive",
		models.Say("Create a directory from an archive; the body is the archive")}, a.uploadArchive)
	binary := map[string]*huma.MediaType{octetStream: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	paths := s.api.OpenAPI().Paths
	for _, path := range []string{content, archive, version} {
		paths[path].Get.Responses["200"].Content = binary
	}
	for _, path := range []string{content, version} {
		paths[path].Get.Responses["206"] = &huma.Response{Description: http.StatusText(http.StatusPartialContent), Content: binary}
		paths[path].Get.Responses["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
	}
	for _, path := range []string{content, archive} {
		paths[path].Put.RequestBody = &huma.RequestBody{Required: true, Content: binary}
	}
}

const octetStream = "application/octet-stream"

// isStream reports whether a route has bodies of any size.
func isStream(c echo.Context) bool {
	return strings.HasPrefix(c.Path(), apiPrefix+uploadsPath) || strings.HasSuffix(c.Path(), "/files/content") ||
		strings.HasSuffix(c.Path(), "/files/upload") || strings.HasSuffix(c.Path(), "/files/archive") ||
		strings.HasSuffix(c.Path(), "/files/versions/:version/content")
}

// Stream gives an operation the connection.
type Stream struct{ c echo.Context }

// Resolve takes the connection before the operation runs.
func (s *Stream) Resolve(hc huma.Context) []error {
	s.c = humaecho.Unwrap(hc)
	return nil
}

// FileDownload names a file.
type FileDownload struct {
	ByPath
	Stream
}

func (a rest) downloadFile(ctx context.Context, in *FileDownload) (*huma.StreamResponse, error) {
	content, err := a.Files.Open(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), !isHead(in.c.Request()))
	return a.sendFile(content, err)
}

// ByFileVersion names a version of a file.
type ByFileVersion struct {
	ByID
	Version int64 `path:"version" minimum:"1" doc:"ID of the version"`
}

// FileVersionDownload names a version of a file.
type FileVersionDownload struct {
	ByFileVersion
	Stream
}

func (a rest) downloadFileVersion(ctx context.Context, in *FileVersionDownload) (*huma.StreamResponse, error) {
	content, err := a.Files.OpenVersion(ctx, actorOf(ctx), in.ID, in.Version, !isHead(in.c.Request()))
	return a.sendFile(content, err)
}

// sendFile responds with a file, by net/http's rules for ranges and conditions.
func (a rest) sendFile(content *files.Content, err error) (*huma.StreamResponse, error) {
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer content.Close()
		a.send(humaecho.Unwrap(hc), content.Entry, content.Transfer, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("ETag", content.Entry.ETag)
			w.Header().Set("Content-Type", octetStream)
			http.ServeContent(w, r, "", content.Entry.Modified, content.File)
			return nil
		})
	}}, nil
}

// send sends bytes of files as an attachment until their right is revoked.
func (a rest) send(c echo.Context, e files.Entry, t *files.Transfer, write func(http.ResponseWriter, *http.Request) error) {
	w := &sender{ResponseWriter: c.Response(), raw: innermost(c.Response()),
		ends: func() bool { return t.Ends(c.Request().Context()) || !a.Holds() }}
	connection := http.NewResponseController(c.Response())
	stop := func() { _ = connection.SetWriteDeadline(time.Unix(1, 0)) } // a test's recorder has no connection
	if !t.Start(c.Request().Context(), stop) {
		panic(http.ErrAbortHandler)
	}
	c.Response().Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(e.Name))
	r := c.Request()
	if isHead(r) {
		head := *r
		head.Method = http.MethodHead
		r = &head
	}
	err := write(w, r)
	if err != nil {
		a.Logger.WarnContext(c.Request().Context(), "a transfer was cut off", "path", e.Path, "err", err)
	}
	if err != nil || w.ends() {
		panic(http.ErrAbortHandler)
	}
}

// innermost is net/http's own writer, which sends files by the kernel.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// sender writes a body in pieces, each only while the transfer may go on.
type sender struct {
	http.ResponseWriter // writes the header
	raw                 http.ResponseWriter
	ends                func() bool
	refused             bool // by net/http, whose text a problem replaces
}

const pieceBytes = 4 << 20

var errEnded = errors.New("the right to the transfer has ended")

// refusals are what net/http refuses by the conditions and ranges of a request.
var refusals = map[int]error{
	http.StatusPreconditionFailed:           models.Conflict("The file does not satisfy the conditions of the request."),
	http.StatusRequestedRangeNotSatisfiable: models.Invalid("Range", "does not overlap the file"),
}

func (s *sender) WriteHeader(status int) {
	reason := refusals[status]
	if reason == nil {
		s.ResponseWriter.WriteHeader(status)
		return
	}
	s.refused = true
	s.Header().Del("Content-Disposition")
	p := problemOf(reason)
	p.Status, p.Title = status, http.StatusText(status)
	_ = p.write(s.ResponseWriter) // the connection is broken otherwise
}

func (s *sender) Write(b []byte) (int, error) {
	if s.refused {
		return len(b), nil
	}
	if s.ends() {
		return 0, errEnded
	}
	return s.ResponseWriter.Write(b)
}

// ReadFrom sends a part of a file.
func (s *sender) ReadFrom(from io.Reader) (sent int64, err error) {
	part, ok := from.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{s}, from)
	}
	if _, ok := part.R.(*os.File); !ok {
		return io.Copy(struct{ io.Writer }{s}, from)
	}
	for part.N > 0 {
		if s.ends() {
			return sent, errEnded
		}
		n, err := io.Copy(s.raw, &io.LimitedReader{R: part.R, N: min(part.N, pieceBytes)})
		sent += n
		part.N -= n
		if err != nil || n == 0 {
			return sent, err
		}
	}
	return sent, nil
}

// FileUpload is the content of a file.
type FileUpload struct {
	ByPath
	FileCondition
	Stream
}

func (a rest) uploadFile(ctx context.Context, in *FileUpload) (*FoundFile, error) {
	return foundFile(a.Files.Write(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.body(), in.c.Request().ContentLength,
		in.condition()))
}

// body is the body of the request, as long as bytes arrive.
func (s *Stream) body() io.Reader {
	return arriving{s.c.Request().Body, http.NewResponseController(s.c.Response())}
}

// arriving reads a body. The server's limit for a whole request holds for each part.
type arriving struct {
	io.Reader
	connection *http.ResponseController
}

const partTimeout = time.Minute

func (r arriving) Read(b []byte) (int, error) {
	_ = r.connection.SetReadDeadline(time.Now().Add(partTimeout)) // a test's recorder has no connection
	return r.Reader.Read(b)
}

// ArchiveDownload names a directory and a format.
type ArchiveDownload struct {
	ByPath
	Item   []string `query:"item,explode" maxItems:"1000" doc:"percent-encoded paths of what the archive has, instead of a whole directory; names in it are relative to the deepest directory that contains all"`
	Format string   `query:"format" enum:"zip,tar" default:"zip" doc:"format of the archive"`
	Stream
}

func (a rest) downloadArchive(ctx context.Context, in *ArchiveDownload) (*huma.StreamResponse, error) {
	items, err := parseItems(in.Item)
	if err != nil {
		return nil, err
	}
	archive, err := a.Files.OpenArchive(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), items, files.Format(in.Format),
		!isHead(in.c.Request()))
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer archive.Close()
		e := archive.Entry
		e.Name += "." + in.Format
		a.send(humaecho.Unwrap(hc), e, archive.Transfer, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", octetStream)
			if r.Method == http.MethodHead {
				return nil
			}
			return archive.Write(r.Context(), w)
		})
	}}, nil
}

// parseItems are percent-encoded paths.
func parseItems(texts []string) (items []models.FilePath, err error) {
	for _, text := range texts {
		item, err := models.ParseFilePath(text)
		if err != nil {
			return nil, models.Invalid("item", "is not a valid path")
		}
		items = append(items, item)
	}
	return items, nil
}

// ArchiveUpload is an archive that becomes a directory.
type ArchiveUpload struct {
	ByPath
	Format string `query:"format" enum:"zip,tar,tar.gz" default:"zip" doc:"format of the archive"`
	Stream
}

func (a rest) uploadArchive(ctx context.Context, in *ArchiveUpload) (*FoundFile, error) {
	return foundFile(a.Files.Extract(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), files.Format(in.Format), in.body()))
}
