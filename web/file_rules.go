package web

import (
	"cmp"
	"context"

	"weir/models"
)

// FileAccessView is who may do what with a path, and why.
type FileAccessView struct {
	ProjectID int64
	Project   string
	Path      models.FilePath
	Crumbs    []Link
	CanRule   bool // change the rules
	SeesRules bool

	Member     string // whose verdict it is; "": the reader's own
	Verdict    FileVerdict
	Why        []FileRuleRow // rules that apply, the decisive one first
	Limits     []FileLimit   // of that member's workspaces at the path and below it
	Rules      []FileRuleRow // about the path and the directories above it
	Members    []MemberVerdictRow
	More       string        // address of more members, or empty
	Subjects   []FileRuleRow // that a rule can be for
	Form       Form          // subject, access, download
	Effects    []FileEffectRow
	Previewing bool  // the effect of the form
	Removing   int64 // rule whose removal is previewed; 0: none
}

// FileVerdict is what somebody may do with a path.
type FileVerdict struct {
	Access   models.FileAccess
	Download bool
	Ended    bool // writing is reduced to reading by the end of the project or the membership
}

// FileRuleRow is a rule.
type FileRuleRow struct {
	ID        int64 // 0: of the layout
	Path      models.FilePath
	Subject   models.FileSubject
	SubjectID int64
	Name      string // of the member or role
	Access    models.FileAccess
	Download  models.FileDownload
}

// MemberVerdictRow is what a member may do with a path.
type MemberVerdictRow struct {
	ID         int64
	Name, Role string
	FileVerdict
}

// FileEffectRow is what a change means for a member.
type FileEffectRow struct {
	Name, Role    string
	Before, After FileVerdict
}

// FileLimit is a path at which mounts cannot express the rules.
type FileLimit struct {
	Path            models.FilePath
	Access, Mounted models.FileAccess
	Reason          string // as in rules.LimitationReason
}

// FileRulesView lists all rules of a project.
type FileRulesView struct {
	ProjectID int64
	Project   string
	Rows      []FileRuleRow
	Next      string
}

// subjectWords are the kinds of subjects.
var subjectWords = map[string]models.Text{
	string(models.SubjectMember):   models.Say("member"),
	string(models.SubjectRole):     models.Say("role"),
	string(models.SubjectProject):  models.Say("all members"),
	string(models.SubjectEveryone): models.Say("everyone"),
}

func (r FileRuleRow) subject(ctx context.Context) string {
	switch r.Subject {
	case models.SubjectMember:
		return T(ctx, "member %s", cmp.Or(r.Name, number(r.SubjectID)))
	case models.SubjectRole:
		return T(ctx, "role %s", cmp.Or(r.Name, number(r.SubjectID)))
	case models.SubjectProject:
		return T(ctx, "all members")
	default:
		return T(ctx, "everyone")
	}
}

// Value is the subject in the form.
func (r FileRuleRow) Value() string { return string(r.Subject) + ":" + number(r.SubjectID) }

func downloadWord(ctx context.Context, d models.FileDownload) string {
	switch d {
	case models.DownloadAllow:
		return T(ctx, "allowed")
	case models.DownloadDeny:
		return T(ctx, "not allowed")
	default:
		return T(ctx, "as above it")
	}
}

func accessOptions(ctx context.Context) (list []Option) {
	for _, a := range []models.FileAccess{models.AccessNone, models.AccessRead, models.AccessWrite} {
		list = append(list, Option{string(a), accessWord(ctx, a)})
	}
	return list
}

func downloadOptions(ctx context.Context) (list []Option) {
	for _, d := range []models.FileDownload{models.DownloadInherit, models.DownloadAllow, models.DownloadDeny} {
		list = append(list, Option{string(d), downloadWord(ctx, d)})
	}
	return list
}

func (v FileVerdict) words(ctx context.Context) string { return accessWords(ctx, v.Access, v.Download) }

// whose is the title of the verdict.
func (v FileAccessView) whose(ctx context.Context) string {
	if v.Member == "" {
		return T(ctx, "Your access")
	}
	return T(ctx, "Access of %s", v.Member)
}

// limitWords is why a mount cannot express the rules.
func limitWords(ctx context.Context, l FileLimit) string {
	switch l.Reason {
	case "file":
		return T(ctx, "A rule on a single file applies only outside notebooks.")
	case "missing":
		return T(ctx, "Nothing is at this path. In notebooks the rule applies once it exists and the workspace is started again.")
	case "hidden":
		return T(ctx, "A directory above it is hidden, so it is hidden in notebooks as well.")
	case "replaceable":
		return T(ctx, "In a cluster, a directory that members can replace is not mounted by itself. It is hidden in notebooks if the rules allow less than for the directory above.")
	default:
		return T(ctx, "A notebook can copy what it can read. The ban on downloads applies only outside notebooks.")
	}
}

func (v FileAccessView) at(query string) string {
	return filesPath(v.ProjectID, "/access", v.Path) + query
}

// changed reports whether a member's access changes.
func (r FileEffectRow) changed() bool { return r.Before != r.After }

// Offer sets the subjects that a rule can be for, each once.
func (v *FileAccessView) Offer(subjects []FileRuleRow) {
	seen := map[string]bool{}
	for _, s := range subjects {
		if !seen[s.Value()] {
			seen[s.Value()] = true
			v.Subjects = append(v.Subjects, s)
		}
	}
}

func (v FileAccessView) subjectOptions(ctx context.Context) (list []Option) {
	for _, s := range v.Subjects {
		list = append(list, Option{s.Value(), s.subject(ctx)})
	}
	return list
}
