package handlers

import (
	"slices"
	"strconv"
	"strings"

	"weir/models"
	"weir/pool/providers"
	"weir/web"
)

// providerInput reads the settings of a provider, except its owner.
func (f *form) providerInput() providers.ProviderInput {
	return providers.ProviderInput{Name: f.text("name"), Version: f.version(),
		Terms: models.Terms{Cores: f.number("cores"), Devices: f.ticked("devices"),
			Projects: append(f.ticked("projects"), f.numbers("other_projects")...), Hours: f.hours(),
			TimeZone: strings.TrimSpace(f.text("time_zone")), GraceMinutes: f.number("grace_minutes")}}
}

// ticked are the numbers N for which the checkbox name.N is ticked.
func (f *form) ticked(name string) (list []int64) {
	for key := range f.values {
		if n, err := strconv.ParseInt(strings.TrimPrefix(key, name+"."), 10, 64); err == nil && strings.HasPrefix(key, name+".") {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// maxHours limits the lending hours that are read; models.Terms checks the exact limit.
const maxHours = 30

// hours reads the spans that are filled in, even in part.
func (f *form) hours() (list []models.Window) {
	for i := range maxHours {
		at := "hours[" + strconv.Itoa(i) + "]."
		w := models.Window{From: f.text(at + "from"), To: f.text(at + "to")}
		for _, day := range f.ticked(at + "days") {
			w.Days = append(w.Days, int(day))
		}
		if w.From != "" || w.To != "" || len(w.Days) > 0 {
			list = append(list, w)
		}
	}
	return list
}

// terms is the form as it was sent, with the lending hours numbered as they were read.
func (f *form) terms(t models.Terms) web.Form {
	w := f.asSubmitted()
	for name := range w.Values {
		if strings.HasPrefix(name, "hours[") {
			delete(w.Values, name)
		}
	}
	putHours(w, t.Hours)
	return w
}

// termsForm is the form of a provider's terms as they are.
func termsForm(p models.Provider) web.Form {
	f := formOf(p.Version)
	t := p.Terms
	f.Values["name"], f.Values["time_zone"] = p.Name, t.TimeZone
	for name, n := range map[string]int64{"cores": t.Cores, "grace_minutes": t.GraceMinutes} {
		if n > 0 {
			f.Values[name] = strconv.FormatInt(n, 10)
		}
	}
	tick(f, "devices", t.Devices)
	tick(f, "projects", t.Projects)
	putHours(f, t.Hours)
	return f
}

func tick(f web.Form, name string, ids []int64) {
	for _, id := range ids {
		f.Values[name+"."+strconv.FormatInt(id, 10)] = "1"
	}
}

func putHours(f web.Form, hours []models.Window) {
	for i, h := range hours {
		at := "hours[" + strconv.Itoa(i) + "]."
		f.Values[at+"from"], f.Values[at+"to"] = h.From, h.To
		for _, day := range h.Days {
			f.Values[at+"days."+strconv.Itoa(day)] = "1"
		}
	}
}
