package handlers

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	tus "github.com/tus/tusd/v2/pkg/handler"
	exp "golang.org/x/exp/slog"

	"weir/models"
	"weir/storage/files"
)

// uploadsPath is where files are uploaded in parts, by the tus protocol 1.0.0. Its
// metadata "path" is the path in workspaces.
const uploadsPath = "/projects/:id/files/uploads"

func (a *App) uploadsRoutes(g *echo.Group) {
	g.POST(uploadsPath, a.uploads((*tus.UnroutedHandler).PostFile))
	g.HEAD(uploadsPath+"/:upload", a.uploads((*tus.UnroutedHandler).HeadFile))
	g.PATCH(uploadsPath+"/:upload", a.uploads((*tus.UnroutedHandler).PatchFile))
	g.DELETE(uploadsPath+"/:upload", a.uploads((*tus.UnroutedHandler).DelFile))
}

// describeUploads adds the operations of the protocol to the document: tusd answers them.
func (a rest) describeUploads(s section) {
	document := s.api.OpenAPI()
	like := document.Paths["/projects/{id}/files/versions/{version}/restore"].Post
	number := func(name, doc string) *huma.Param {
		return &huma.Param{Name: name, In: "path", Required: true, Description: doc, Schema: like.Parameters[0].Schema}
	}
	responses := func(status int) map[string]*huma.Response {
		all := map[string]*huma.Response{strconv.Itoa(status): {Description: http.StatusText(status)}}
		for _, refusal := range []int{401, 403, 404, 409, 422, 500} {
			all[strconv.Itoa(refusal)] = like.Responses[strconv.Itoa(refusal)]
		}
		for _, refusal := range []int{400, 404, 409, 412, 413, 415} { // of the protocol
			all[strconv.Itoa(refusal)] = orText(all[strconv.Itoa(refusal)], refusal)
		}
		return all
	}
	const one = "/projects/{id}/files/uploads/{upload}"
	for _, r := range []route{
		{http.MethodPost, "/projects/{id}/files/uploads", 201, "create-upload",
			models.Say("Begin a resumable upload by the tus protocol 1.0.0; metadata: path")},
		{http.MethodHead, one, 200, "get-upload", models.Say("Get the offset of a resumable upload")},
		{http.MethodPatch, one, 204, "continue-upload", models.Say("Continue a resumable upload")},
		{http.MethodDelete, one, 204, "cancel-upload", models.Say("Cancel a resumable upload")},
	} {
		op := &huma.Operation{OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary.String(), Tags: []string{s.tag},
			Parameters: []*huma.Param{number("id", "ID of the project.")}, Metadata: map[string]any{summaryKey: r.summary},
			Responses: responses(r.status)}
		if r.path == one {
			op.Parameters = append(op.Parameters, number("upload", "ID of the upload."))
		}
		document.AddOperation(op)
	}
}

// orText is a refusal of an operation that tusd can make, too, as a line of text.
func orText(refusal *huma.Response, status int) *huma.Response {
	either := &huma.Response{Description: http.StatusText(status), Content: map[string]*huma.MediaType{
		"text/plain": {Schema: &huma.Schema{Type: huma.TypeString},
			Example: "ERR_UNSUPPORTED_VERSION: missing, invalid or unsupported Tus-Resumable header"}}}
	if refusal != nil {
		maps.Copy(either.Content, refusal.Content)
	}
	return either
}

// isUpload reports whether a path is of an upload, for which HEAD is not like GET.
func isUpload(path string) bool {
	return strings.HasPrefix(path, apiPrefix) && strings.Contains(path, "/files/uploads/")
}

// uploads answers with a handler of tusd over the file service.
func (a *App) uploads(serve func(*tus.UnroutedHandler, http.ResponseWriter, *http.Request)) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, project := c.Request().Context(), number(c, "id")
		if err := a.Files.CheckUploads(ctx, actorOf(ctx), project); err != nil {
			return err
		}
		composer := tus.NewStoreComposer()
		store := uploadStore{a, project, c.Request().Method == http.MethodDelete}
		composer.UseCore(store)
		composer.UseTerminater(store)
		base := apiPrefix + path("projects", project, "files", "uploads") + "/"
		h, err := tus.NewUnroutedHandler(tus.Config{StoreComposer: composer, BasePath: base,
			DisableDownload: true, Cors: &tus.CorsConfig{Disable: true}, Logger: exp.New(exp.NewTextHandler(io.Discard, nil))})
		if err != nil {
			return err
		}
		one := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(h, w, r) })
		r := c.Request().Clone(ctx)
		r.URL.Path = strings.TrimPrefix(r.URL.Path, base) // tusd takes what remains for the ID
		h.Middleware(one).ServeHTTP(c.Response(), r)
		return nil
	}
}

// uploadStore is the uploads of a project's files for tusd.
type uploadStore struct {
	*App
	project int64
	cancels bool // the request is to cancel an upload
}

// NewUpload begins an upload.
func (s uploadStore) NewUpload(ctx context.Context, info tus.FileInfo) (tus.Upload, error) {
	u, err := s.Files.BeginUpload(ctx, actorOf(ctx), s.project, models.FilePath(info.MetaData["path"]), info.Size)
	return s.upload(ctx, u, err)
}

// GetUpload finds an upload.
func (s uploadStore) GetUpload(ctx context.Context, id string) (tus.Upload, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, tus.ErrNotFound
	}
	u, err := s.Files.Upload(ctx, actorOf(ctx), s.project, n)
	if err == nil && u.Offset == u.Length && !s.cancels { // all arrived before the server ended, or what followed failed
		_, err = u.Finish(ctx)
	}
	return s.upload(ctx, u, err)
}

// AsTerminatableUpload returns the upload, which can be cancelled.
func (s uploadStore) AsTerminatableUpload(u tus.Upload) tus.TerminatableUpload {
	return u.(upload)
}

func (s uploadStore) upload(ctx context.Context, u *files.Upload, err error) (tus.Upload, error) {
	if err != nil {
		return nil, s.refusal(ctx, err)
	}
	return upload{s, u}, nil
}

// refusal is an error of the service for tusd: a problem.
func (s uploadStore) refusal(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	p := problemOf(err)
	if p.Status >= 500 && ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, "upload failed", "project", s.project, "err", err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return tus.Error{ErrorCode: string(p.Kind), Message: p.Detail,
		HTTPResponse: tus.HTTPResponse{StatusCode: p.Status, Body: string(body), Header: tus.HTTPHeader{"Content-Type": p.ContentType("")}}}
}

// upload is one upload for tusd.
type upload struct {
	store uploadStore
	*files.Upload
}

func (u upload) GetInfo(context.Context) (tus.FileInfo, error) {
	return tus.FileInfo{ID: strconv.FormatInt(u.ID(), 10), Size: u.Length, Offset: u.Offset, MetaData: tus.MetaData{"path": string(u.Path())}},
		nil
}

func (u upload) WriteChunk(ctx context.Context, offset int64, part io.Reader) (int64, error) {
	n, err := u.Append(ctx, offset, part)
	return n, u.store.refusal(ctx, err)
}

// GetReader is for downloads by tusd, which are disabled.
func (u upload) GetReader(context.Context) (io.ReadCloser, error) { return nil, tus.ErrNotFound }

func (u upload) FinishUpload(ctx context.Context) error {
	_, err := u.Finish(ctx)
	return u.store.refusal(ctx, err)
}

func (u upload) Terminate(ctx context.Context) error { return u.store.refusal(ctx, u.Cancel(ctx)) }
