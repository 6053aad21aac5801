package handlers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

// form reads the values of an HTML form or query into the services' input structs and
// collects the values that it cannot parse.
type form struct {
	values   url.Values
	problems models.Problems
}

func readForm(c echo.Context) (*form, error) {
	values, err := c.FormParams()
	if err != nil {
		return nil, echo.NewHTTPError(http.StatusBadRequest, "form").SetInternal(err)
	}
	extendReadDeadline(http.NewResponseController(c.Response()), true)
	return &form{values: values}, nil
}

// err returns the values that could not be parsed.
func (f *form) err() error { return f.problems.Err() }

// with is the error of a call that changes nothing, together with the values that could not be read.
func (f *form) with(err error) error {
	if err != nil && models.KindOf(err) == models.KindInternal {
		return err
	}
	return cmp.Or(f.errWith(err), err)
}

// errWith is err together with what check finds wrong with the rest, so that a person sees all
// problems at once. It is nil where everything could be read: then the service checks it.
func (f *form) errWith(check error) error {
	if len(f.problems) == 0 {
		return nil
	}
	all := slices.Clone(f.problems)
	var e *models.Error
	if errors.As(check, &e) && e.Kind == models.KindInvalid {
		for _, other := range e.Fields {
			if !slices.ContainsFunc(f.problems, func(own models.Field) bool { return own.Name == other.Name }) {
				all = append(all, other)
			}
		}
	}
	return all.Err()
}

// asSubmitted is the form as it was sent.
func (f *form) asSubmitted() web.Form {
	w := web.Form{Values: map[string]string{}, Version: f.version()}
	for name, v := range f.values {
		if len(v) > 0 && !strings.Contains(name, "password") && name != "code" {
			w.Values[name] = v[0]
		}
		if strings.HasSuffix(name, "permissions") || name == "events" { // a box each
			w.Values[name] = strings.Join(v, " ")
		}
	}
	return w
}

// sentKey is the key of echo's context for a form that is shown again.
const sentKey = "sent"

// submittedOr is the form that was sent and is shown again, or f on a fresh page.
func submittedOr(c echo.Context, f web.Form) web.Form {
	if w, ok := c.Get(sentKey).(web.Form); ok {
		return w
	}
	return f
}

// confirmPage is a confirmation form, with the reason if the action was refused.
func confirmPage(c echo.Context, v web.ConfirmView) templ.Component {
	w := submittedOr(c, v.Form)
	v.Form.Message, v.Form.Errors = w.Message, w.Errors
	return web.ConfirmPage(v)
}

// renamePage asks for another name.
func renamePage(c echo.Context, name, action, back string) templ.Component {
	f := formOf(0)
	f.Values["name"] = name
	return web.RenamePage(web.RenameView{Name: name, Action: action, Back: back, Form: submittedOr(c, f)})
}

func (f *form) text(name string) string { return f.values.Get(name) }

func (f *form) bool(name string) bool { return f.values.Get(name) == "1" || f.values.Get(name) == "on" }

func (f *form) version() int64 {
	text := f.values.Get("version")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && text != "" {
		return -1 // never the present one
	}
	return n
}

// amount reads an optional amount in the unit that its name ends with.
func (f *form) amount(name string) *int64 {
	text := strings.TrimSpace(f.values.Get(name))
	if text == "" {
		return nil
	}
	var n int64
	var err error
	mib, cpu := strings.HasSuffix(name, "_mib"), strings.HasSuffix(name, "cpu_milli")
	switch {
	case mib:
		n, err = models.ParseMiB(text, 1)
	case cpu:
		n, err = models.ParseCPU(text)
	default:
		n, err = models.ParseCount(text)
	}
	switch {
	case err == nil:
	case errors.Is(err, models.ErrTooLarge):
		f.problems.Add(name, "must be at most %s", models.Quantity(name, models.MaxAmount))
	case mib:
		f.problems.Add(name, "must be a size such as 16 GiB")
	case cpu:
		f.problems.Add(name, "must be a number of cores such as 4 or 1.5")
	default:
		f.problems.Add(name, "must be a whole number, 0 or greater")
	}
	return &n
}

func (f *form) number(name string) int64 {
	if n := f.amount(name); n != nil {
		return *n
	}
	return 0
}

func (f *form) optionalText(name string) *string {
	text := strings.TrimSpace(f.values.Get(name))
	if text == "" {
		return nil
	}
	return &text
}

// day reads an optional date as midnight UTC. Buttons send a full timestamp, which is
// not truncated.
func (f *form) day(name string) *time.Time {
	text := strings.TrimSpace(f.values.Get(name))
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if moment, notMoment := time.Parse(time.RFC3339, text); notMoment == nil {
		t, err = moment.UTC(), nil
	}
	if err != nil {
		f.problems.Add(name, "must be a date such as 2027-01-31")
		return nil
	}
	if exact := f.exact(name); exact != nil && models.Day(*exact).Equal(t) {
		return exact
	}
	return &t
}

// exact is the time of a date that was shown; nil if that was no time of day.
func (f *form) exact(name string) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, f.values.Get(name+web.ExactSuffix))
	if err != nil {
		return nil
	}
	return new(t.UTC())
}

// lastDay reads an optional last day as the end of that day; see day.
func (f *form) lastDay(name string) *time.Time {
	t := f.day(name)
	if t == nil || len(strings.TrimSpace(f.text(name))) != len(time.DateOnly) {
		return t
	}
	if exact := f.exact(name); exact != nil && models.LastDay(*exact).Equal(models.Day(*t)) {
		return exact
	}
	return new(models.AfterDay(models.Day(*t)))
}

// permissions reads the checkboxes of a custom role; other roles ignore them.
func (f *form) permissions(prefix string) []string {
	if f.text(prefix+"permission") != models.PermissionCustom {
		return nil
	}
	return strings.Fields(strings.Join(f.values[prefix+"permissions"], " ")) // as sent, or as shown again
}

// resources reads a quota or limit; empty amounts are left open.
func (f *form) resources(prefix string) models.ResourcesInput {
	amount := func(name string) *int64 {
		switch strings.ToLower(strings.TrimSpace(f.text(prefix + name))) {
		case models.UnlimitedWord, "∞", "不限":
			return new(models.Unlimited)
		}
		return f.amount(prefix + name)
	}
	return models.ResourcesInput{GPUCores: amount(".gpu_cores"), GPUMemoryMiB: amount(".gpu_memory_mib"),
		CPUMilli: amount(".cpu_milli"), MemoryMiB: amount(".memory_mib"), StorageMiB: amount(".storage_mib")}
}

// launch reads launch parameters; prefix is "launch." or empty.
func (f *form) launch(prefix string) models.LaunchParameters {
	l := models.LaunchParameters{GPUModel: f.optionalText(prefix + "gpu_model"), Path: f.optionalText(prefix + "path"),
		Env: models.ParseEnv(prefix+"env", f.text(prefix+"env"), &f.problems)}
	for _, n := range l.Numbers() {
		*n.Value = f.amount(prefix + n.Name)
	}
	return l
}

// Initial values of forms.

func formOf(version int64) web.Form { return web.Form{Values: map[string]string{}, Version: version} }

// putResources formats amounts exactly, so that an unchanged form changes nothing.
func putResources(f web.Form, prefix string, r models.Resources) {
	for _, a := range r.Amounts() {
		f.Values[prefix+"."+a.Name] = models.ExactQuantity(a.Name, a.Value)
	}
}

// putDay sets a date of a form. A time of day is sent with it, and kept unless the date is changed.
func putDay(f web.Form, name string, t *time.Time) {
	if t != nil {
		putExact(f, name, models.Day(*t), models.Day(*t), *t)
	}
}

func putLastDay(f web.Form, name string, end *time.Time) {
	if end != nil {
		last := models.LastDay(*end)
		putExact(f, name, last, models.AfterDay(last), *end)
	}
}

// putExact shows a day for a time that is not the one which the day stands for.
func putExact(f web.Form, name string, day, standsFor, t time.Time) {
	f.Values[name] = day.Format(time.DateOnly)
	if !t.Equal(standsFor) {
		f.Values[name+web.ExactSuffix] = t.UTC().Format(time.RFC3339Nano)
	}
}

func putLaunch(f web.Form, prefix string, l models.LaunchParameters) {
	for _, n := range l.Numbers() {
		if value := *n.Value; value != nil {
			f.Values[prefix+n.Name] = models.ExactQuantity(n.Name, *value)
		}
	}
	for name, v := range map[string]*string{"gpu_model": l.GPUModel, "path": l.Path} {
		if v != nil {
			f.Values[prefix+name] = *v
		}
	}
	f.Values[prefix+"env"] = models.FormatEnv(l.Env)
}

// accountID reads the email address or ID of an account and returns the ID; 0 if empty.
func (a *App) accountID(ctx context.Context, f *form, name string) int64 {
	text := strings.TrimSpace(f.text(name))
	if !strings.Contains(text, "@") {
		return f.number(name)
	}
	u, err := a.Accounts.UserByEmail(ctx, actorOf(ctx), text)
	if err != nil {
		f.problems.Add(name, "no account has this email address; invite the person first")
	}
	return u.ID
}

// numbers reads whole numbers that are separated by commas or spaces.
func (f *form) numbers(name string) (list []int64) {
	for _, text := range strings.FieldsFunc(f.text(name), func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			f.problems.Add(name, "must be project IDs separated by commas")
			return nil
		}
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// projectChoices lists up to a page of the projects that the actor may see, and those
// already chosen, which may be others. more is set if the list is incomplete.
func (a *App) projectChoices(ctx context.Context, actor policies.Actor, chosen []int64) (list []web.Choice, more bool, err error) {
	projects, more, err := a.Projects.ProjectNames(ctx, actor, chosen)
	seen := map[int64]bool{}
	for _, p := range projects {
		seen[p.ID] = true
		list = append(list, web.Choice{ID: p.ID, Label: p.Name})
	}
	for _, id := range chosen {
		if !seen[id] {
			list = append(list, web.Choice{ID: id, Label: "№ " + strconv.FormatInt(id, 10)})
		}
	}
	return list, more, err
}

func (f *form) lines(name string) (list []string) {
	for line := range strings.Lines(f.text(name)) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// samePasswords refuses a repeated password that differs.
func (f *form) samePasswords() {
	if f.values.Has("password_again") && f.text("password") != f.text("password_again") {
		f.problems.Add("password_again", "does not match")
	}
}
