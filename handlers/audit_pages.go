package handlers

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/web"
)

func (a *App) auditRoutes(p *echo.Group) {
	p.GET("/audit", a.auditPage)
}

// auditPage shows changes, chosen by the form above them. A filter that cannot
// be read chooses nothing.
func (a *App) auditPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	f := &form{values: c.QueryParams()}
	in := f.auditQuery()
	v := web.AuditView{Form: f.asSubmitted(), Filtered: in != policies.AuditQuery{}, CSV: apiPrefix + "/audit.csv" + auditAddress(in)}
	page := pageAfter(c)
	page.Limit++
	rows, err := a.Accounts.AuditEntries(ctx, actor, in, page)
	if err != nil && models.KindOf(err) != models.KindInvalid {
		return err
	}
	if err := f.with(err); err != nil {
		v.Form = v.Form.Refuse(err)
		return a.render(c, http.StatusUnprocessableEntity, web.AuditPage(v))
	}
	v.Rows = rows[:min(pageSize, len(rows))]
	if len(rows) > pageSize {
		v.Next = pageAt(c, store.Page{After: v.Rows[pageSize-1].ID})
	}
	return a.render(c, http.StatusOK, web.AuditPage(v))
}

// auditQuery reads the filter; days are whole, in UTC, and the last one
// counts.
func (f *form) auditQuery() policies.AuditQuery {
	out := policies.AuditQuery{Actor: strings.TrimSpace(f.text("actor")), Action: f.text("action"), Object: f.text("object"),
		ObjectID: f.number("object_id"), ProjectID: f.number("project_id"), Project: strings.TrimSpace(f.text("project_name"))}
	if t := f.day("from"); t != nil {
		out.From = *t
	}
	if t := f.day("until"); t != nil {
		out.Until = t.Add(24 * time.Hour)
	}
	return out
}

// auditAddress is the filter as the REST API takes it.
func auditAddress(f policies.AuditQuery) string {
	q := url.Values{}
	for name, text := range map[string]string{"actor": f.Actor, "action": f.Action, "object": f.Object, "project_name": f.Project} {
		if text != "" {
			q.Set(name, text)
		}
	}
	for name, n := range map[string]int64{"object_id": f.ObjectID, "project_id": f.ProjectID} {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	for name, t := range map[string]time.Time{"from": f.From, "until": f.Until} {
		if !t.IsZero() {
			q.Set(name, t.Format(time.RFC3339))
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}
