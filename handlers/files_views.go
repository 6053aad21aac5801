package handlers

import (
	"context"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/storage/files"
	"weir/storage/rules"
	"weir/web"
)

// filesView is what all pages about a project's files have in common.
func (a *App) filesView(ctx context.Context, project int64) (v web.FilesView, err error) {
	p, err := a.Files.ProjectFiles(ctx, actorOf(ctx), project)
	v = web.FilesView{ProjectID: project, Project: p.Project, Member: p.Home != "", CanRule: a.Storage.MayEdit(actorOf(ctx), project),
		Storage: []web.StorageView{storageView(models.Say("Project storage"), p.Storage)}}
	if p.Own != nil {
		v.Storage = append(v.Storage, storageView(models.Say("My storage"), *p.Own))
	}
	if v.Member {
		v.Roots = []web.FileRoot{{Label: models.Say("Project"), Path: models.FilePath(rules.ProjectDir(project))},
			{Label: models.Say("My directory"), Path: p.Home}}
	}
	labels := []models.Text{models.Say("Public algorithms"), models.Say("Public models"), models.Say("Public data sets")}
	for i, dir := range rules.PublicDirs() {
		v.Roots = append(v.Roots, web.FileRoot{Label: labels[i], Path: models.FilePath(dir)})
	}
	return v, err
}

func storageView(label models.Text, a files.Allowance) web.StorageView {
	return web.StorageView{Label: label, Used: a.Used, Reserved: a.Reserved, LimitMiB: a.LimitMiB}
}

// locatedView is what all pages about one file or directory have in common: the one that
// the request names.
func (a *App) locatedView(ctx context.Context, c echo.Context) (v web.FilesView, e files.Entry, err error) {
	id := number(c, "id")
	if v, err = a.filesView(ctx, id); err != nil {
		return v, e, err
	}
	if e, err = a.Files.Stat(ctx, actorOf(ctx), id, pathOf(c)); err != nil {
		return v, e, err
	}
	a.locate(&v, e)
	return v, e, nil
}

// locate puts a file or directory into the view, with the directories above it. Of
// nested roots the deepest is current.
func (a *App) locate(v *web.FilesView, e files.Entry) {
	v.Directory, v.IsModel = fileRowOf(e), rules.IsModel(string(e.Path))
	v.Crumbs = crumbsOf(v.ProjectID, v.Project, e.Path)
	if len(v.Crumbs) > 1 && e.Owner != "" {
		v.Crumbs[1].Label = e.Owner
	}
	for i, r := range slices.Backward(v.Roots) {
		if rules.Within(string(e.Path), string(r.Path)) {
			v.Roots[i].Current = true
			break
		}
	}
}

// crumbsOf are links to the directories above a path.
func crumbsOf(project int64, name string, path models.FilePath) []web.Link {
	list := []web.Link{{Label: name, Href: filesPath(project, "")}}
	root := rules.ProjectDir(project)
	for at := 1; at < len(path); {
		next := strings.IndexByte(string(path[at:]), '/')
		if next < 0 {
			break
		}
		if dir := path[:at+next]; len(dir) > len(root) || !rules.Within(root, string(dir)) {
			_, label := rules.Split(string(dir))
			list = append(list, web.Link{Label: models.VisibleName(label), Href: filesPath(project, dir)})
		}
		at += next + 1
	}
	return list
}

// memberDepth is how deep the members' own directories are.
const memberDepth = 3

func fileRowOf(e files.Entry) web.FileRow {
	row := web.FileRow{Name: e.Name, Path: e.Path, Kind: string(e.Kind), Size: e.Size, Modified: e.Modified, Access: e.Access,
		Download: e.Download, Ended: e.Ended, Changeable: e.Changeable, ETag: e.ETag}
	row.Name = ownedName(e.Name, e.Owner, e.Path)
	return row
}

// ownedName is the name of a member for the member's own directory.
func ownedName(name, owner string, path models.FilePath) string {
	if owner != "" && strings.Count(string(path), "/") == memberDepth {
		return owner
	}
	return name
}

func versionRowOf(v files.Version) web.FileVersionRow {
	return web.FileVersionRow{ID: v.ID, Bytes: v.Bytes, At: v.At, By: v.By, Download: v.Downloadable, Changeable: v.Changeable}
}

func trashRowOf(t files.Trashed) web.TrashRow {
	return web.TrashRow{ID: t.ID, Path: t.Path, Directory: t.Directory, Bytes: t.Bytes, At: t.At, By: t.By, Changeable: t.Changeable,
		Versions: t.Versions}
}

// pathOf is the path that a page is about. Forms name it percent-encoded as "in".
func pathOf(c echo.Context) models.FilePath {
	if in, err := models.ParseFilePath(c.FormValue("in")); err == nil && in != "" {
		return in
	}
	return models.FilePath(c.QueryParam("path"))
}

// filesPath is the address of a directory of a project.
func filesPath(project int64, dir models.FilePath) string {
	address := path("projects", project, "files")
	if dir != "" {
		address += "?path=" + dir.String()
	}
	return address
}

// entryPath is the address of the page of a file or directory.
func entryPath(project int64, at models.FilePath) string {
	return path("projects", project, "files", "entry") + "?path=" + at.String()
}
