package handlers

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/files"
	"weir/storage/rules"
	"weir/web"
)

func (a *App) filesRoutes(p *echo.Group) {
	const at = "/projects/:id/files"
	p.GET(at, a.page(a.filesPage))
	p.GET(at+"/entry", a.page(a.filePage))
	p.GET(at+"/model", a.modelPage)
	p.GET(at+"/graph", a.modelGraphPage)
	p.GET(at+"/preview", a.previewFile)
	p.POST(at+"/directories", a.submit(a.filesPage, a.createDirectoryPage))
	p.POST(at+"/upload", a.uploadFilesPage)
	p.POST(at+"/environment", a.submit(a.filePage, a.setModelEnvironmentPage))
	p.POST(at+"/rename", a.submit(a.filePage, a.renameFilePage))
	p.GET(at+"/move", a.page(a.moveFilesPage))
	p.POST(at+"/move", a.submit(a.moveFilesPage, a.moveFiles))
	p.POST(at+"/delete", a.submit(nil, a.deleteFilesPage))
	p.POST(at+"/versions/:version/restore", a.submit(nil, a.restoreVersionPage))
	p.GET(at+"/versions/:version/delete", a.page(a.confirmPurgeVersionPage))
	p.POST(at+"/versions/:version/delete", a.submit(nil, a.purgeVersionPage))
	p.GET(at+"/trash", a.page(a.trashPage))
	p.POST(at+"/trash/:item/restore", a.submit(nil, a.restoreTrashPage))
	p.GET(at+"/trash/:item/delete", a.page(a.confirmPurgePage))
	p.POST(at+"/trash/:item/delete", a.submit(nil, a.purgeTrashPage))
	a.fileRulesRoutes(p)
}

// rowsOfPage is the number of files on a page; the page's script asks for more at a time.
func rowsOfPage(c echo.Context) int {
	if n, err := strconv.Atoi(c.QueryParam("limit")); err == nil {
		return n
	}
	return store.PageSize
}

// filesPage is a directory, or with q the result of a search below it.
func (a *App) filesPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id, dir := actorOf(ctx), number(c, "id"), pathOf(c)
	v, err := a.filesView(ctx, id)
	if err != nil {
		return nil, err
	}
	v.Sort, v.Down, v.Query = c.QueryParam("sort"), c.QueryParam("order") == "desc", c.QueryParam("q")
	if v.Sort != string(files.BySize) && v.Sort != string(files.ByModified) {
		v.Sort = string(files.ByName)
	}
	v.First, v.Form = c.QueryParam("cursor") == "", submittedOr(c, web.Form{})
	if v.Query != "" {
		return a.foundFilesPage(ctx, v, dir)
	}
	list, err := a.Files.List(ctx, actor, id, files.ListQuery{Path: a.firstDirectory(v, dir), Sort: files.Sort(v.Sort), Descending: v.Down,
		Cursor: c.QueryParam("cursor"), Limit: rowsOfPage(c), Tree: true})
	if err != nil {
		return nil, err
	}
	a.locate(&v, list.Directory)
	v.Tree = branchesOf(v.Roots, list.Tree)
	v.Rows = models.Map(list.Entries, fileRowOf)
	v.HasModel = hasModel(v.Rows)
	if list.Next != "" {
		q := c.Request().URL.Query()
		q.Del("in")
		q.Set("path", string(list.Directory.Path))
		q.Set("cursor", list.Next)
		v.Next = path("projects", v.ProjectID, "files") + "?" + q.Encode() // also after a refused form
	}
	return web.FilesPage(v), nil
}

// branchesOf are the directories of a tree for its page. Roots and members' own
// directories have names of their own.
func branchesOf(roots []web.FileRoot, tree []files.TreeDirectory) (list []web.FileBranch) {
	for _, d := range tree {
		b := web.FileBranch{Label: models.Say("%s", ownedName(d.Name, d.Owner, d.Path)), Path: d.Path, Branches: branchesOf(roots, d.Directories),
			Partial: !d.Complete}
		if i := slices.IndexFunc(roots, func(r web.FileRoot) bool { return r.Path == d.Path }); i >= 0 {
			b.Label = roots[i].Label
		}
		list = append(list, b)
	}
	return list
}

// firstDirectory is the directory that is shown if none is named.
func (a *App) firstDirectory(v web.FilesView, dir models.FilePath) models.FilePath {
	if dir == "" && v.Member {
		return models.FilePath(rules.ProjectDir(v.ProjectID))
	}
	return dir
}

func (a *App) foundFilesPage(ctx context.Context, v web.FilesView, dir models.FilePath) (templ.Component, error) {
	found, err := a.Files.Search(ctx, actorOf(ctx), v.ProjectID, a.firstDirectory(v, dir), v.Query)
	if err != nil {
		return nil, err
	}
	a.locate(&v, found.Directory)
	v.Tree = branchesOf(v.Roots, found.Tree)
	v.Partial = !found.Complete
	v.Rows = models.Map(found.Entries, fileRowOf)
	return web.FilesPage(v), nil
}

// filePage is a file or directory with its preview and versions, or the versions of a file that is there no more.
func (a *App) filePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id := actorOf(ctx), number(c, "id")
	located, e, missing := a.locatedView(ctx, c)
	if missing != nil && models.KindOf(missing) != models.KindNotFound {
		return nil, missing
	}
	versions, err := a.Files.Versions(ctx, actor, id, pathOf(c), pageAfter(c))
	if err != nil || missing != nil && len(versions) == 0 {
		return nil, cmp.Or(missing, err)
	}
	v := web.FileView{FilesView: located, VersionAge: a.Files.VersionAge, Gone: missing != nil,
		Versions: models.Map(versions, versionRowOf),
		More:     nextPage(c, versions, func(v files.Version) int64 { return v.ID })}
	if v.Gone {
		_, name := rules.Split(string(versions[0].Path))
		a.locate(&v.FilesView, files.Entry{Name: models.VisibleName(name), Path: versions[0].Path, Kind: beneath.Irregular})
		return web.FilePage(v), nil
	}
	_, name := rules.Split(string(e.Path))
	v.Preview, v.NoPreview = filePreviewOf(e)
	v.Rename = web.Form{Values: map[string]string{"file_name": name}}
	if !changesModel(c) {
		v.Rename = submittedOr(c, v.Rename)
	}
	if v.IsModel {
		v.Model = a.modelView(ctx, c, id, e.Path)
	}
	return web.FilePage(v), nil
}

func (a *App) trashPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	common, err := a.filesView(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.TrashView{ProjectID: common.ProjectID, Project: common.Project, Member: common.Member, Age: a.Files.TrashAge}
	lost := files.LostPath(v.ProjectID)
	versions, err := a.Files.Versions(ctx, actorOf(ctx), v.ProjectID, lost, store.Page{Limit: 1})
	if models.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if len(versions) > 0 {
		v.Lost = lost
	}
	items, err := a.Files.Trash(ctx, actorOf(ctx), v.ProjectID, pageAfter(c))
	v.Rows = models.Map(items, trashRowOf)
	v.Next = nextPage(c, items, func(t files.Trashed) int64 { return t.ID })
	return web.TrashPage(v), err
}
