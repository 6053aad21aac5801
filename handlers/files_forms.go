package handlers

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/files"
	"weir/storage/rules"
	"weir/web"
)

// items are the files that a form selects.
func (f *form) items() []models.FilePath {
	list, err := parseItems(f.values["item"])
	if err != nil {
		f.problems.Add("item", "is not a valid path")
	}
	return list
}

// nameIn is the path of a name that a form has, in a directory.
func (f *form) nameIn(field string, dir models.FilePath) models.FilePath {
	name := strings.TrimSpace(f.text(field))
	if !rules.ValidName(name) {
		f.problems.Add(field, "is not a valid name for a file")
	}
	return models.FilePath(rules.Join(string(dir), name))
}

func (a *App) createDirectoryPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, dir := number(c, "id"), pathOf(c)
	made := f.nameIn("directory", dir)
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	e, err := a.Files.MakeDirectory(ctx, actorOf(ctx), project, made)
	return redirect{filesPath(project, dir), models.Say("Directory %s created.", e.Name)}, err
}

func (a *App) renameFilePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, from := number(c, "id"), pathOf(c)
	dir, _ := rules.Split(string(from))
	to := f.nameIn("file_name", models.FilePath(dir))
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	e, err := a.Files.Move(ctx, actorOf(ctx), project, from, to)
	return redirect{entryPath(project, e.Path), models.Say("Renamed to %s.", e.Name)}, err
}

// moveFilesPage asks where files are moved or copied to.
func (a *App) moveFilesPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project := number(c, "id")
	if _, err := a.Files.ProjectFiles(ctx, actorOf(ctx), project); err != nil {
		return nil, err
	}
	f, err := readForm(c)
	if err != nil {
		return nil, err
	}
	v := web.MoveView{ProjectID: project, Directory: pathOf(c), Items: f.items()}
	v.Form = submittedOr(c, web.Form{Values: map[string]string{"to_directory": string(v.Directory)}})
	if len(v.Items) == 0 {
		err = models.Invalid("item", "select at least one file or directory")
	}
	return web.MovePage(v), errors.Join(err, f.err())
}

func (a *App) moveFiles(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, actor, items, to := number(c, "id"), actorOf(ctx), f.items(), strings.TrimSpace(f.text("to_directory"))
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	change, message := a.Files.Move, models.Say("%d files and directories moved.", len(items))
	if f.text("action") == "copy" {
		change, message = a.Files.Copy, models.Say("%d files and directories copied.", len(items))
	}
	if err := a.checkTarget(ctx, project, models.FilePath(to)); err != nil {
		return redirect{}, err
	}
	for i, item := range items {
		_, name := rules.Split(string(item))
		if _, err := change(ctx, actor, project, item, models.FilePath(rules.Join(to, name))); err != nil {
			f.values["item"] = f.values["item"][i:] // those before it are done
			return redirect{}, ofFile(name, err)
		}
	}
	return redirect{filesPath(project, models.FilePath(to)), message}, nil
}

// checkTarget refuses a directory into which nothing can be moved.
func (a *App) checkTarget(ctx context.Context, project int64, to models.FilePath) error {
	e, err := a.Files.Stat(ctx, actorOf(ctx), project, to)
	kind, refusal := models.KindOf(err), models.Invalid("to_directory", "is not a directory that you can read")
	switch {
	case kind == models.KindForbidden:
		refusal.Kind = kind
		return refusal
	case kind == models.KindNotFound, kind == models.KindInvalid, err == nil && e.Kind != beneath.Directory:
		return refusal
	}
	return err
}

// ofFile is a refusal of one file among several, with its name, after which the form is shown again.
func ofFile(name string, err error) error {
	refused, known := errors.AsType[*models.Error](err)
	if !known || refused.Kind == models.KindInternal {
		return err
	}
	named := *refused
	named.Message = models.Say("%s: %s", models.VisibleName(name), refused.Message)
	switch named.Kind {
	case models.KindNotFound:
		named.Kind = models.KindConflict
	case models.KindForbidden:
		named.Fields = []models.Field{{Name: "to_directory", Reason: named.Message}}
	}
	return &named
}

func (a *App) deleteFilesPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, items := number(c, "id"), f.items()
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	for _, item := range items {
		if _, err := a.Files.Delete(ctx, actorOf(ctx), project, item, files.Condition{}); err != nil {
			return redirect{}, err
		}
	}
	return redirect{filesPath(project, pathOf(c)), models.Say("%d files and directories moved to the trash.", len(items))}, nil
}

func (a *App) restoreVersionPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	e, err := a.Files.RestoreVersion(ctx, actorOf(ctx), project, number(c, "version"))
	return redirect{entryPath(project, e.Path), models.Say("Version restored as %s. Any content that it replaced is now a version.", e.Path)}, err
}

func (a *App) confirmPurgeVersionPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project := number(c, "id")
	version, err := a.Files.Version(ctx, actorOf(ctx), project, number(c, "version"))
	if err != nil {
		return nil, err
	}
	return web.ConfirmPage(web.ConfirmPurgeVersion(project, version.Path, versionRowOf(files.Version{FileVersion: version}))), nil
}

func (a *App) purgeVersionPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	version, err := a.Files.PurgeVersion(ctx, actorOf(ctx), project, number(c, "version"))
	if err != nil {
		return redirect{}, err
	}
	next := entryPath(project, version.Path)
	if _, err := a.Files.Stat(ctx, actorOf(ctx), project, version.Path); err != nil {
		others, err := a.Files.Versions(ctx, actorOf(ctx), project, version.Path, store.Page{Limit: 1})
		if err != nil || len(others) == 0 { // the last version of a deleted file has no page
			next = path("projects", project, "files", "trash")
		}
	}
	return redirect{next, models.Say("Removed for good.")}, nil
}

func (a *App) restoreTrashPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	e, err := a.Files.Restore(ctx, actorOf(ctx), project, number(c, "item"), "")
	return redirect{path("projects", project, "files", "trash"), models.Say("%s restored.", e.Name)}, err
}

func (a *App) confirmPurgePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project, id := number(c, "id"), number(c, "item")
	items, err := a.Files.Trash(ctx, actorOf(ctx), project, store.Page{After: id + 1, Limit: 1})
	if err == nil && (len(items) == 0 || items[0].ID != id) {
		err = models.NotFound("file")
	}
	if err != nil {
		return nil, err
	}
	return web.ConfirmPage(web.ConfirmPurge(project, trashRowOf(items[0]))), nil
}

func (a *App) purgeTrashPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	err := a.Files.Purge(ctx, actorOf(ctx), project, number(c, "item"))
	return redirect{path("projects", project, "files", "trash"), models.Say("Removed for good.")}, err
}

// uploadFilesPage stores the files of a form as they arrive.
func (a *App) uploadFilesPage(c echo.Context) error {
	project, dir := number(c, "id"), pathOfUpload(c)
	if err := a.Files.CheckUploads(c.Request().Context(), actorOf(c.Request().Context()), project); err != nil {
		return err
	}
	parts, err := c.Request().MultipartReader()
	if err != nil {
		return models.Invalid("files", "must be sent as multipart/form-data")
	}
	var stored int64
	conflict := ""
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return echo.NewHTTPError(http.StatusBadRequest, "form").SetInternal(err)
		}
		if part.FormName() == "conflict" {
			word, err := io.ReadAll(io.LimitReader(part, 16))
			if conflict = string(word); err != nil {
				return err
			}
		}
		if part.FileName() == "" {
			continue
		}
		ok, err := a.storePart(c, project, dir, part, conflict)
		if err != nil {
			return err
		}
		if ok {
			stored++
		}
	}
	return a.redirectWithFlash(c, filesPath(project, dir), models.Say("%d files uploaded.", stored))
}

// pathOfUpload is the directory of an upload, whose body must not be read for it.
func pathOfUpload(c echo.Context) models.FilePath { return models.FilePath(c.QueryParam("path")) }

// storePart stores one file of a form; it reports false if there is one and it is to be
// skipped.
func (a *App) storePart(c echo.Context, project int64, dir models.FilePath, part *multipart.Part, conflict string) (bool, error) {
	ctx := c.Request().Context()
	name := part.FileName()
	if !rules.ValidName(name) {
		return false, models.Invalid("files", "is not a valid name for a file")
	}
	condition := files.Condition{IfNoneMatch: "*"}
	if conflict == "replace" {
		condition = files.Condition{}
	}
	to := models.FilePath(rules.Join(string(dir), name))
	if conflict == "keep" {
		free, err := a.freePath(ctx, project, to)
		if err != nil {
			return false, err
		}
		to = free
	}
	_, err := a.Files.Write(ctx, actorOf(ctx), project, to, arriving{part, http.NewResponseController(c.Response())}, -1, condition)
	if conflict == "skip" && errors.Is(err, models.ErrStale) {
		return false, nil
	}
	return err == nil, err
}

// maxKept is how many files of one name are kept beside each other.
const maxKept = 1000

// freePath is a path beside a file at which there is none: "a (2).txt".
func (a *App) freePath(ctx context.Context, project int64, wanted models.FilePath) (models.FilePath, error) {
	ext := filepath.Ext(string(wanted))
	stem := strings.TrimSuffix(string(wanted), ext)
	at := wanted
	for n := 2; n < maxKept; n++ {
		_, err := a.Files.Stat(ctx, actorOf(ctx), project, at)
		if models.KindOf(err) == models.KindNotFound {
			return at, nil
		}
		if err != nil {
			return "", err
		}
		at = models.FilePath(stem + " (" + strconv.Itoa(n) + ")" + ext)
	}
	return "", models.Conflict("There is already a file or directory with this name.")
}
