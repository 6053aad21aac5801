package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/models/store"
	"weir/storage"
	"weir/storage/rules"
)

func (a rest) fileRulesOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/files/rules", 200, "list-file-rules",
		models.Say("List the rules of a project's shared directories")}, a.listFileRules)
	register(a, s, route{http.MethodPut, "/projects/{id}/files/rules", 200, "put-file-rule",
		models.Say("Create or replace the rule about a path for a subject; effective at once, and for mounts at the next workspace start")}, a.putFileRule)
	register(a, s, route{http.MethodPost, "/projects/{id}/files/rules/preview", 200, "preview-file-rule",
		models.Say("Preview the effect of a rule on each member")}, a.previewFileRule)
	register(a, s, route{http.MethodDelete, "/projects/{id}/files/rules/{rule}", 204, "delete-file-rule", models.Say("Delete a rule")},
		a.deleteFileRule)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/access/members", 200, "list-file-access",
		models.Say("List what each member may do with a path")}, a.listFileAccess)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/access", 200, "explain-file-access",
		models.Say("Explain what a member may do with a path")}, a.explainFileAccess)
}

// FileRuleQuery selects rules of a project.
type FileRuleQuery struct {
	PageOf
	Path  string `query:"path" maxLength:"12288" doc:"only rules about this path"`
	Above bool   `query:"above" doc:"also rules about the directories above the path"`
}

func (a rest) listFileRules(ctx context.Context, in *FileRuleQuery) (*Response[List[storage.NamedRule]], error) {
	return listed(in.Paging, func(r storage.NamedRule) int64 { return r.ID }, func(page store.Page) ([]storage.NamedRule, error) {
		return a.Storage.List(ctx, actorOf(ctx), in.ID, storage.RuleQuery{Path: models.FilePath(in.Path), Above: in.Above}, page)
	}, unchanged)
}

// FileAccessList asks for what each member may do with a path.
type FileAccessList struct {
	ByPath
	Paging
}

// MemberFileAccess is what a member may do with a path.
type MemberFileAccess struct {
	MemberID int64         `json:"member_id"`
	Name     string        `json:"name"`
	Role     string        `json:"role"`
	Verdict  rules.Verdict `json:"verdict"`
}

func (a rest) listFileAccess(ctx context.Context, in *FileAccessList) (*Response[List[MemberFileAccess]], error) {
	return listed(in.Paging, func(v storage.MemberVerdict) int64 { return v.Member.ID },
		func(page store.Page) ([]storage.MemberVerdict, error) {
			return a.Storage.MemberVerdicts(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), page)
		}, func(v storage.MemberVerdict) MemberFileAccess {
			return MemberFileAccess{v.Member.ID, v.Member.UserName, v.Member.RoleName, v.Verdict}
		})
}

func (a rest) putFileRule(ctx context.Context, in *CreateIn[storage.RuleInput]) (*Response[models.FileRule], error) {
	r, err := a.Storage.Put(ctx, actorOf(ctx), in.ID, in.Body)
	return &Response[models.FileRule]{r}, err
}

// ByFileRule names a rule of a project.
type ByFileRule struct {
	ByID
	Rule int64 `path:"rule" minimum:"1" doc:"ID of the rule"`
}

func (a rest) deleteFileRule(ctx context.Context, in *ByFileRule) (*Nothing, error) {
	return nil, a.Storage.Delete(ctx, actorOf(ctx), in.ID, in.Rule)
}

// FileEffect is what a change of the rules means for a member.
type FileEffect struct {
	MemberID int64         `json:"member_id"`
	Name     string        `json:"name"`
	Role     string        `json:"role"`
	Before   rules.Verdict `json:"before"`
	After    rules.Verdict `json:"after"`
}

func fileEffectOf(e storage.Effect) FileEffect {
	return FileEffect{e.Member.ID, e.Member.UserName, e.Member.RoleName, e.Before, e.After}
}

// FileRulePreview asks for the effect of a change on a page of the members.
type FileRulePreview struct {
	PageOf
	Body storage.RuleChange
}

func (a rest) previewFileRule(ctx context.Context, in *FileRulePreview) (*Response[List[FileEffect]], error) {
	return listed(in.Paging, func(e storage.Effect) int64 { return e.Member.ID }, func(page store.Page) ([]storage.Effect, error) {
		return a.Storage.Preview(ctx, actorOf(ctx), in.ID, in.Body, page)
	}, fileEffectOf)
}

// FileAccessQuery names a path, and a member.
type FileAccessQuery struct {
	ByID
	Path   string `query:"path" default:"/" maxLength:"12288" doc:"path in workspaces"`
	Member int64  `query:"member" minimum:"0" doc:"member ID; absent: the authenticated user"`
}

// FileExplanation is a verdict with its reasons.
type FileExplanation struct {
	Path     models.FilePath `json:"path" doc:"percent-encoded path"`
	MemberID int64           `json:"member_id,omitempty" doc:"absent: not a member"`
	Verdict  rules.Verdict   `json:"verdict"`
	Rules    []rules.Rule    `json:"rules,omitempty" doc:"rules that apply, the decisive one first; for those who can change rules"`
}

func (a rest) explainFileAccess(ctx context.Context, in *FileAccessQuery) (*Response[FileExplanation], error) {
	e, err := a.Storage.Explain(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.Member)
	return &Response[FileExplanation]{FileExplanation{models.FilePath(e.Path), e.Member.MemberID, e.Verdict, e.Applied}}, err
}
