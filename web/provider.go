package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/models"
)

// ProviderView is one machine that lends GPUs.
//
// Fields of Form, the terms: name, owner_id, cores, grace_minutes, time_zone,
// devices.ID, projects.ID, hours[N].days.DAY, hours[N].from, hours[N].to.
// Fields of Recall: recall.grace_minutes, recall.reason.
type ProviderView struct {
	Provider    Provider
	Facts       models.Provider
	Owner       string
	Since       *time.Time // when its agent was enrolled; nil: there is none
	Shares      int        // in use there now
	Users       int        // of these shares
	Own         bool       // the portal's own machine
	NamedByNode bool       // its name cannot be changed
	Blocked     error      // why it cannot be removed
	Form        Form
	Recall      Form
	Act         Form // of the other actions
	Devices     []Choice
	Projects    []Choice
	// MoreProjects than can be shown may be named by their numbers.
	MoreProjects bool
	Chosen       bool // restricted to selected projects, which the reader may not see
	Latencies    []models.ProviderLatency
}

// Choice is a thing that can be ticked.
type Choice struct {
	ID    int64
	Label string
}

// NewProviderView is the form for an authorization code, which is shown once.
type NewProviderView struct {
	Form    Form   // gpu_code, name, owner_id
	Code    string // empty until it is made
	GPUCode string
	Until   time.Time // the code is good
	Server  string    // address of the portal, for the agent
}

// emptyHours is how many spans a form offers beside those that there are.
const emptyHours = 3

// hourRows is how many spans of hours the form has.
func (v ProviderView) hourRows() int { return len(v.Facts.Terms.Hours) + emptyHours }

// hasHours reports whether there is a span, or something is typed into one.
func (v ProviderView) hasHours() bool {
	for i := range v.hourRows() {
		if v.Form.anyIn(hourField(i, "from"), hourField(i, "to"), hourField(i, "days")) {
			return true
		}
	}
	return v.Form.failed("hours")
}

func (v ProviderView) topics() []string { return []string{"pool", "telemetry:" + number(v.Facts.ID)} }

func (v ProviderView) subtitle(ctx context.Context) string {
	words := v.Provider.hardware()
	if v.Owner != "" {
		words += " · " + T(ctx, "owner: %s", v.Owner)
	}
	return words
}

// inPool reports whether a provider is still in the pool.
func (v ProviderView) inPool() bool { return v.Facts.State != models.ProviderOffline }

// recallSummary formats how many shares a recall would end.
func (v ProviderView) recallSummary(ctx context.Context) string {
	if v.Shares == 0 {
		return T(ctx, "No shares are in use on this provider.")
	}
	return T(ctx, "Shares that will end: %d; members affected: %d.", v.Shares, v.Users)
}

// inUse formats what is in use there.
func (v ProviderView) inUse(ctx context.Context) string {
	if v.Shares == 0 {
		return T(ctx, "none in use")
	}
	return T(ctx, "%d in use; members: %d", v.Shares, v.Users)
}

// week is the days of the week as people list them; 0 is Sunday.
var week = [7]int{1, 2, 3, 4, 5, 6, 0}

var dayNames = [7]models.Text{models.Say("Sun"), models.Say("Mon"), models.Say("Tue"), models.Say("Wed"),
	models.Say("Thu"), models.Say("Fri"), models.Say("Sat")}

// weekday is the short name of a day of the week by its number, from 0 for Sunday.
func weekday(ctx context.Context, number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(dayNames) {
		return number
	}
	return TT(ctx, dayNames[n])
}

// hours formats lending hours: "Mon, Tue 18:00–08:00".
func hours(ctx context.Context, w models.Window) string {
	var days []string
	for _, d := range week {
		if slices.Contains(w.Days, d) {
			days = append(days, TT(ctx, dayNames[d]))
		}
	}
	return strings.Join(days, ", ") + " " + w.From + "–" + w.To
}

// lent formats a list of things that are lent; an empty list means all.
func lent(ctx context.Context, ids []int64, choices []Choice) string {
	if len(ids) == 0 {
		return T(ctx, "all")
	}
	names := map[int64]string{}
	for _, c := range choices {
		names[c.ID] = c.Label
	}
	var words []string
	for _, n := range ids {
		if names[n] == "" {
			names[n] = number(n)
		}
		words = append(words, names[n])
	}
	return strings.Join(words, ", ")
}

// lentTo formats the projects to which a provider lends, as far as the reader may see
// them.
func (v ProviderView) lentTo(ctx context.Context) string {
	words := lent(ctx, v.Facts.Terms.Projects, v.Projects)
	switch {
	case !v.Chosen || v.Provider.Manage:
		return words
	case len(v.Facts.Terms.Projects) == 0:
		return T(ctx, "selected projects, none of yours")
	}
	return T(ctx, "selected projects, including yours: %s", words)
}

func (v ProviderView) hours(ctx context.Context) string {
	t := v.Facts.Terms
	if len(t.Hours) == 0 {
		return T(ctx, "always")
	}
	var spans []string
	for _, w := range t.Hours {
		spans = append(spans, hours(ctx, w))
	}
	words := strings.Join(spans, T(ctx, "; "))
	if t.TimeZone != "" {
		words += " (" + t.TimeZone + ")"
	}
	return words
}

func (v ProviderView) limit() string {
	if v.Facts.Terms.Cores == 0 {
		return "100"
	}
	return number(v.Facts.Terms.Cores)
}

// machine is a digest short enough to compare by eye.
func (v ProviderView) machine() string { return v.Facts.Machine[:min(len(v.Facts.Machine), 16)] }

// hourField is the name of an input of the i-th span.
func hourField(i int, name string) string { return "hours[" + strconv.Itoa(i) + "]." + name }

// ConfirmRemoveProvider asks for confirmation before a machine is removed from the
// pool; blocked says why it cannot be.
func ConfirmRemoveProvider(p models.Provider, blocked error) ConfirmView {
	return ConfirmView{
		Title: models.Say("Remove %s from the pool?", p.Name),
		Consequences: []models.Text{
			models.Say("Its GPUs leave the pool and its agent is revoked. To enroll it again, you need a new authorization code."),
		},
		Blocked: blocked,
		Button:  models.Say("Remove provider"),
		Action:  providerPath(p.ID) + "/remove",
		Back:    providerPath(p.ID), Version: p.Version,
	}
}

// ConfirmRevokeAgent asks for confirmation before a machine's agent is revoked.
func ConfirmRevokeAgent(p models.Provider) ConfirmView {
	return ConfirmView{
		Title: models.Say("Revoke the agent of %s?", p.Name),
		Consequences: []models.Text{models.Say("Its next heartbeat is rejected. The provider counts as lost until an agent is enrolled there with a new code."),
			models.Say("Shares in use are kept.")},
		Button: models.Say("Revoke agent"),
		Action: providerPath(p.ID) + "/revoke",
		Back:   providerPath(p.ID), Version: p.Version,
	}
}

// command is the command to run on the machine.
func (v NewProviderView) command() string {
	return "weir agent --server " + v.Server + " --code " + v.Code
}

// latencies formats the latencies to client zones, such as berlin 3.2 ms; less than a tenth is rounded up.
func (v ProviderView) latencies() string {
	list := make([]string, len(v.Latencies))
	for i, l := range v.Latencies {
		list[i] = l.Zone + " " + strconv.FormatFloat(max(float64(l.Micros)/1000, 0.1), 'f', 1, 64) + " ms"
	}
	return strings.Join(list, " · ")
}
