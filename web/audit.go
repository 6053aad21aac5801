package web

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"weir/models"
)

// AuditView lists entries of the audit log.
type AuditView struct {
	Form     Form // the filter
	Filtered bool
	Rows     []models.AuditEntry
	Next     string // address of the next page, empty on the last
	CSV      string // address of the whole list as a file
}

// auditFields are the inputs of the filter.
var auditFields = map[string]field{
	"actor":        {Label: models.Say("Actor"), Hint: models.Say("Full name or email address, or weir followed by the component name.")},
	"action":       {Label: models.Say("Action")},
	"object":       {Label: models.Say("Object")},
	"object_id":    {Label: models.Say("Object ID"), Hint: models.Say("Numeric ID of the object."), Inputmode: "numeric"},
	"project_name": {Label: models.Say("Project"), Hint: models.Say("Exact name.")},
	"project_id":   {Label: models.Say("Project ID"), Hint: models.Say("The number in the project's URL."), Inputmode: "numeric"},
	"from":         {Label: models.Say("From"), Hint: models.Say("First day, in UTC."), Type: "date"},
	"until":        {Label: models.Say("Until"), Hint: models.Say("Last day, in UTC."), Type: "date"},
}

var objectWords = map[string]models.Text{
	"account":        models.Say("account"),
	"agent":          models.Say("agent"),
	"authorization":  models.Say("authorization"),
	"department":     models.Say("department"),
	"device":         models.Say("device"),
	"environment":    models.Say("environment"),
	"file":           models.Say("file"),
	"file rule":      models.Say("rule about files"),
	"split preset":   models.Say("split preset"),
	"identity":       models.Say("identity"),
	"installation":   models.Say("installation"),
	"invitation":     models.Say("invitation"),
	"member":         models.Say("member"),
	"gpu_price":      models.Say("GPU price"),
	"overcommit":     models.Say("overcommit"),
	"project":        models.Say("project"),
	"provider":       models.Say("provider"),
	"request":        models.Say("request"),
	"reservation":    models.Say("reservation"),
	"run":            models.Say("run"),
	"sign-in-policy": models.Say("sign-in policy"),
	"deployment":     models.Say("deployment"),
	"role":           models.Say("role"),
	"token":          models.Say("token"),
	"webhook":        models.Say("webhook"),
	"curator":        models.Say("curator"),
	"workspace":      models.Say("workspace"),
}

var actionWords = map[string]models.Text{
	"accept":         models.Say("accept"),
	"approve":        models.Say("approve"),
	"submit":         models.Say("submit"),
	"create":         models.Say("create"),
	"copy":           models.Say("copy"),
	"delete":         models.Say("delete"),
	"download":       models.Say("download"),
	"drain":          models.Say("drain"),
	"end":            models.Say("end"),
	"register":       models.Say("register"),
	"enrol":          models.Say("enroll"),
	"extract":        models.Say("extract"),
	"fence":          models.Say("fence"),
	"hand-over":      models.Say("hand over"),
	"launch":         models.Say("launch"),
	"move":           models.Say("move"),
	"purge":          models.Say("remove for good"),
	"purge-version":  models.Say("remove version for good"),
	"recall":         models.Say("recall"),
	"refuse":         models.Say("refuse"),
	"renew":          models.Say("renew"),
	"reset-password": models.Say("reset password"),

	"enable-second-factor":  models.Say("enable second factor"),
	"disable-second-factor": models.Say("disable second factor"),
	"reset-second-factor":   models.Say("reset second factor"),
	"end-session":           models.Say("end session"),
	"end-sessions":          models.Say("end sessions"),
	"add-passkey":           models.Say("add passkey"),
	"rename-passkey":        models.Say("rename passkey"),
	"delete-passkey":        models.Say("remove passkey"),
	"create-recovery-codes": models.Say("create recovery codes"),
	"use-recovery-code":     models.Say("use recovery code"),

	"create-password-link": models.Say("create password link"),
	"resume":               models.Say("resume"),
	"retire":               models.Say("remove"),
	"signal":               models.Say("signal"),
	"restart":              models.Say("restart"),
	"restore":              models.Say("restore"),
	"write":                models.Say("write"),
	"revoke":               models.Say("revoke"),
	"rotate":               models.Say("rotate secret"),
	"stop":                 models.Say("stop"),
	"keep":                 models.Say("keep running"),
	"take-back":            models.Say("end handover"),
	"update":               models.Say("update"),
	"withdraw":             models.Say("withdraw"),
}

// translateWord translates a word of the audit log; unknown words are returned
// unchanged.
func translateWord(ctx context.Context, words map[string]models.Text, word string) string {
	if t, ok := words[word]; ok {
		return TT(ctx, t)
	}
	return word
}

// auditOptions are the words of a filter, with the selected one.
func auditOptions(ctx context.Context, words map[string]models.Text, chosen string) []Option {
	list := []Option{{"", T(ctx, "any")}}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		list = append(list, Option{word, TT(ctx, words[word])})
	}
	if _, ok := words[chosen]; !ok && chosen != "" {
		list = append(list, Option{chosen, chosen})
	}
	return list
}

// authenticatedBy formats how an actor was authenticated.
func authenticatedBy(ctx context.Context, via string) string {
	if name, ok := strings.CutPrefix(via, "token "); ok {
		return T(ctx, "token %s", name)
	}
	switch via {
	case "session":
		return T(ctx, "session")
	case "passkey":
		return T(ctx, "passkey")
	case "agent":
		return T(ctx, "agent")
	case "command":
		return T(ctx, "command line")
	case "invitation":
		return T(ctx, "invitation")
	case "password":
		return T(ctx, "password")
	case "password link":
		return T(ctx, "password link")
	}
	return ""
}

// byID reports whether the filter has an ID.
func (v AuditView) byID() bool {
	return v.Form.Value("object_id") != "" || v.Form.Value("project_id") != ""
}

// auditedName is what the changed thing is called, before the change if it has another name
// since, with its ID.
func auditedName(e models.AuditEntry) string {
	for _, state := range []string{e.Before, e.After} {
		var named struct{ Name string }
		if json.Unmarshal([]byte(state), &named) == nil && named.Name != "" {
			return named.Name + " (" + number(e.ObjectID) + ")"
		}
	}
	if e.ObjectID == 0 {
		return ""
	}
	return number(e.ObjectID)
}

// objectPath is where the changed thing is shown, if it is somewhere that the reader may see.
func objectPath(ctx context.Context, e models.AuditEntry) string {
	if path := objectList(e); path != "" || e.Action == "delete" {
		return path
	}
	switch e.Object {
	case "project":
		return projectPath(e.ObjectID)
	case "request":
		return requestPath(e.ObjectID)
	case "workspace":
		return workspacePath(e.ObjectID)
	case "run":
		return runPath(e.ObjectID)
	case "deployment":
		return deploymentPath(e.ObjectID)
	case "reservation":
		return reservationPath(e.ObjectID)
	case "provider", "agent":
		return providerPath(e.ObjectID)
	case "device":
		return devicePath(e.ObjectID)
	case "environment":
		if From(ctx).Can.EditEnvironments {
			return "/environments/" + number(e.ObjectID) + "/edit"
		}
	case "department":
		if From(ctx).Can.EditAccounts {
			return departmentPath(e.ObjectID)
		}
	case "account":
		if From(ctx).Can.ReadAccounts {
			return personPath(e.ObjectID)
		}
	case "webhook":
		return webhookPath(e.ObjectID)
	}
	return ""
}

// objectList is where things without a page of their own are shown, also after their end.
func objectList(e models.AuditEntry) string {
	project := int64(0)
	if e.ProjectID != nil {
		project = *e.ProjectID
	}
	switch e.Object {
	case "invitation":
		return invitationsPath(project)
	case "gpu_price":
		return "/prices"
	case "overcommit":
		return "/capacity"
	case "curator":
		return "/curators"
	case "sign-in-policy":
		return "/sign-in-policy"
	}
	if project == 0 {
		return ""
	}
	switch e.Object {
	case "role", "member":
		return projectPath(project)
	case "file", "file rule":
		return filesPath(project, "", "")
	case "split preset":
		return splitPresetsPath(project)
	}
	return ""
}
