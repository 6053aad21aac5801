package handlers

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/storage"
	"weir/storage/rules"
	"weir/web"
)

func (a *App) fileRulesRoutes(p *echo.Group) {
	const at = "/projects/:id/files"
	p.GET(at+"/rules", a.page(a.fileRulesPage))
	p.POST(at+"/rules/:rule/delete", a.submit(nil, a.deleteFileRulePage))
	p.GET(at+"/access", a.page(a.fileAccessPage))
	p.POST(at+"/access", a.submit(a.fileAccessPage, a.putFileRulePage))
}

func (a *App) fileRulesPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.FileRulesView{ProjectID: project.ID, Project: project.Name}
	list, err := a.Storage.List(ctx, actorOf(ctx), v.ProjectID, storage.RuleQuery{}, pageAfter(c))
	v.Rows = models.Map(list, ruleRowOf)
	v.Next = nextPage(c, list, func(r storage.NamedRule) int64 { return r.ID })
	return web.FileRulesPage(v), err
}

func ruleRowOf(r storage.NamedRule) web.FileRuleRow {
	return web.FileRuleRow{ID: r.ID, Path: r.Path, Subject: r.Subject, SubjectID: r.SubjectID, Name: r.SubjectName, Access: r.Access,
		Download: r.Download}
}

// fileAccessPage explains who may do what with a path. For managers it has a form for
// rules, with what they would change.
func (a *App) fileAccessPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id := actorOf(ctx), number(c, "id")
	member, err := strconv.ParseInt(c.QueryParam("member"), 10, 64)
	if err != nil {
		member = 0
	}
	e, err := a.Storage.Explain(ctx, actor, id, pathOf(c), member)
	if err != nil {
		return nil, err
	}
	project, err := a.Projects.Project(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	v := web.FileAccessView{ProjectID: id, Project: project.Name, Path: models.FilePath(e.Path), CanRule: a.Storage.MayEdit(actor, id),
		SeesRules: e.Sees, Verdict: fileVerdictOf(e.Verdict)}
	v.Crumbs = append(crumbsOf(id, v.Project, v.Path), web.Link{Label: models.VisibleName(lastOf(e.Path)), Href: filesPath(id, v.Path)})
	if v.SeesRules {
		if err := a.pathRules(c, &v, member); err != nil {
			return nil, err
		}
	}
	a.reasons(&v, e)
	if e.Member.MemberID != 0 {
		err = a.limitsAt(ctx, &v, e)
	}
	return web.FileAccessPage(v), err
}

func lastOf(path string) string {
	_, name := rules.Split(path)
	return name
}

func fileVerdictOf(v rules.Verdict) web.FileVerdict {
	return web.FileVerdict{Access: v.Access, Download: v.Download, Ended: v.Ended}
}

// reasons are the rules that a verdict follows from; for who may not see them, the one
// that decides.
func (a *App) reasons(v *web.FileAccessView, e storage.Explanation) {
	applied := e.Applied
	if applied == nil && e.Verdict.Rule.Path != "" {
		applied = []rules.Rule{e.Verdict.Rule}
	}
	for _, r := range applied {
		row := web.FileRuleRow{ID: r.ID, Path: r.Path, Access: r.Access, Download: r.Download}
		kind, id, _ := strings.Cut(r.Subject, ":")
		row.Subject = models.FileSubject(kind)
		row.SubjectID, _ = strconv.ParseInt(id, 10, 64) // everyone has no ID
		if at := slices.IndexFunc(v.Rules, func(known web.FileRuleRow) bool { return r.ID != 0 && known.ID == r.ID }); at >= 0 {
			row.Name = v.Rules[at].Name
		}
		v.Why = append(v.Why, row)
	}
}

// limitsAt are the paths at and below the page's at which mounts cannot express the rules.
func (a *App) limitsAt(ctx context.Context, v *web.FileAccessView, e storage.Explanation) error {
	plan, err := a.Directories.MountPlan(ctx, e.Member)
	for _, l := range plan.Limitations {
		if rules.Within(string(l.Path), e.Path) || rules.Within(e.Path, string(l.Path)) {
			v.Limits = append(v.Limits, web.FileLimit{Path: l.Path, Access: l.Access, Mounted: l.Mounted, Reason: string(l.Reason)})
		}
	}
	return err
}

// pathRules adds the rules and the members' access for those who may see them.
func (a *App) pathRules(c echo.Context, v *web.FileAccessView, member int64) error {
	ctx := c.Request().Context()
	actor, id := actorOf(ctx), v.ProjectID
	list, err := a.Storage.List(ctx, actor, id, storage.RuleQuery{Path: v.Path, Above: true}, store.Page{Limit: store.PageSize})
	if err != nil {
		return err
	}
	v.Rules = models.Map(list, ruleRowOf)
	slices.SortStableFunc(v.Rules, func(a, b web.FileRuleRow) int { return len(b.Path) - len(a.Path) })
	verdicts, err := a.Storage.MemberVerdicts(ctx, actor, id, v.Path, pageAfter(c))
	if err != nil {
		return err
	}
	for _, m := range verdicts {
		v.Members = append(v.Members, web.MemberVerdictRow{ID: m.Member.ID, Name: m.Member.UserName, Role: m.Member.RoleName,
			FileVerdict: fileVerdictOf(m.Verdict)})
		if m.Member.ID == member {
			v.Member = m.Member.UserName
		}
	}
	v.More = nextPage(c, verdicts, func(m storage.MemberVerdict) int64 { return m.Member.ID })
	if !v.CanRule {
		return nil
	}
	if err := a.ruleSubjects(ctx, v); err != nil {
		return err
	}
	return a.ruleChange(c, v)
}

// ruleSubjects are those that a rule can be for.
func (a *App) ruleSubjects(ctx context.Context, v *web.FileAccessView) error {
	subjects := []web.FileRuleRow{{Subject: models.SubjectProject}}
	roles, err := a.Projects.Roles(ctx, actorOf(ctx), v.ProjectID)
	for _, r := range roles {
		subjects = append(subjects, web.FileRuleRow{Subject: models.SubjectRole, SubjectID: r.Role.ID, Name: r.Role.Name})
	}
	for _, m := range v.Members {
		subjects = append(subjects, web.FileRuleRow{Subject: models.SubjectMember, SubjectID: m.ID, Name: m.Name})
	}
	v.Offer(append(subjects, append(v.Rules, web.FileRuleRow{Subject: models.SubjectEveryone})...))
	return err
}

// ruleChange fills the form, and previews what it or the removal of a rule would change.
func (a *App) ruleChange(c echo.Context, v *web.FileAccessView) error {
	ctx := c.Request().Context()
	remove, _ := strconv.ParseInt(c.QueryParam("remove"), 10, 64) // anything else is no rule
	wanted := web.FileRuleRow{Subject: models.SubjectProject, Access: models.AccessRead, Download: models.DownloadInherit}
	for _, r := range v.Rules {
		if r.Path == v.Path && (r.Value() == c.QueryParam("subject") || r.ID == remove) {
			wanted = r
		}
	}
	if wanted.ID != 0 && wanted.ID == remove {
		v.Removing = remove
	}
	v.Form = submittedOr(c, web.Form{Values: map[string]string{"subject_id": wanted.Value(), "access": string(wanted.Access),
		"download": string(wanted.Download)}})
	v.Previewing = v.Form.Value("preview") != "" && !v.Form.Failed()
	if !v.Previewing && v.Removing == 0 {
		return nil
	}
	change := storage.RuleChange{RuleInput: ruleInputOf(v.Path, v.Form), Remove: v.Removing != 0}
	effects, err := a.Storage.Preview(ctx, actorOf(ctx), v.ProjectID, change, store.Page{Limit: store.PageSize})
	if models.KindOf(err) == models.KindInvalid {
		v.Form = v.Form.Refuse(err)
		return nil
	}
	for _, e := range effects {
		v.Effects = append(v.Effects, web.FileEffectRow{Name: e.Member.UserName, Role: e.Member.RoleName, Before: fileVerdictOf(e.Before),
			After: fileVerdictOf(e.After)})
	}
	return err
}

func ruleInputOf(path models.FilePath, f web.Form) storage.RuleInput {
	kind, id, _ := strings.Cut(f.Value("subject_id"), ":")
	in := storage.RuleInput{Path: path, Subject: models.FileSubject(kind), Access: models.FileAccess(f.Value("access")),
		Download: models.FileDownload(f.Value("download"))}
	in.SubjectID, _ = strconv.ParseInt(id, 10, 64) // the project and everyone have none
	return in
}

func (a *App) putFileRulePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, at := number(c, "id"), pathOf(c)
	_, err := a.Storage.Put(ctx, actorOf(ctx), project, ruleInputOf(at, f.asSubmitted()))
	return redirect{accessPage(project, at), models.Say("Rule saved. A workspace that needs a restart for it says so on its page.")}, err
}

func (a *App) deleteFileRulePage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project, at := number(c, "id"), pathOf(c)
	err := a.Storage.Delete(ctx, actorOf(ctx), project, number(c, "rule"))
	return redirect{accessPage(project, at), models.Say("Rule removed.")}, err
}

// accessPage is the address of the rules of a path.
func accessPage(project int64, at models.FilePath) string {
	return path("projects", project, "files", "access") + "?path=" + at.String()
}
