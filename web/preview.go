package web

import (
	"context"
	"strings"

	"github.com/a-h/templ"

	"weir/models"
)

// PreviewView is the effect of a form on a project's quota.
type PreviewView struct {
	Filled    []FilledRow // the quota or limit as it would be saved
	Rows      []PreviewRow
	Members   int64 // with a changed limit
	Headroom  int64 // further members in the role; -1: as many as there are
	Role      bool  // of a role, so that the headroom is worth saying
	OverLimit []MemberOverLimit
	Refused   *models.Error // why it would be refused
	Requested bool          // a request, which is decided by others
	Beyond    []models.Text // by how much it exceeds the pool's capacity, which needs a confirmation
}

// approvableLater reports whether only what is allocated now prevents the approval of a
// request, which can be submitted.
func (v *PreviewView) approvableLater() bool {
	return v.Requested && v.Refused != nil && v.Refused.Kind == models.KindNoCapacity
}

// PreviewRow is one resource; Value is the allocated amount after the change.
type PreviewRow struct {
	models.Amount
	Before, Quota int64
	Remaining     int64 // of the quota; negative if exceeded
	Over          bool  // it is why the change would be refused
}

// FilledRow is one resource of a quota or limit, and where its amount comes from.
type FilledRow struct {
	models.Amount
	Source models.Text
	Limit  *int64 // of each member of a new project; nil: not shown
}

// MemberOverLimit is a member whose use exceeds the new limit.
type MemberOverLimit struct {
	Name   string
	Excess []models.Excess
}

// excessText formats the use of a member beside the new limit.
func (h MemberOverLimit) excessText(ctx context.Context) string {
	text := ""
	for i, e := range h.Excess {
		if i > 0 {
			text += T(ctx, "; ")
		}
		text += T(ctx, "%s: %s in use, new limit %s", TT(ctx, e.Label), models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return text
}

// reasons are why it would be refused, with the resource of each.
func (v *PreviewView) reasons(ctx context.Context) (list []string) {
	for _, f := range v.Refused.Fields {
		reason, label := TT(ctx, f.Reason), fieldName(ctx, f.Name)
		if strings.Contains(f.Name, ".") && !strings.HasPrefix(reason, label) {
			reason = T(ctx, "%s: %s", label, reason)
		}
		list = append(list, reason)
	}
	if len(list) == 0 {
		list = append(list, TT(ctx, v.Refused.Message))
	}
	return list
}

// previewing makes a form update its preview while it is filled in: it is sent to its
// usual address, marked as a preview.
func previewing(action string, v *PreviewView) templ.Attributes {
	if v == nil {
		return nil
	}
	return templ.Attributes{
		"hx-post":     action,
		"hx-trigger":  "input delay:300ms, change delay:100ms",
		"hx-vals":     `{"preview":"1"}`,
		"hx-validate": "false",
		"hx-select":   "#preview",
		"hx-target":   "#preview",
		"hx-swap":     "outerHTML",
		"hx-sync":     "this:replace",
	}
}
