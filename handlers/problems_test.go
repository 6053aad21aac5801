package handlers

import "testing"

// A form with several mistakes, of which some are found while it is read and others by the
// service, shows all of them at once.
func TestAllProblemsAtOnce(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	for _, c := range []struct {
		page string
		form []string
		want []string
	}{
		{"/projects", []string{"name", " ", "quota.gpu_cores", "many", "priority", "500"}, []string{"name", "quota-gpu_cores", "priority"}},
		{"/projects/" + id(w.project), []string{"name", "", "quota.cpu_milli", "some", "version", "1"}, []string{"name", "quota-cpu_milli"}},
		{"/projects/start", []string{"name", "", "members", "many", "emails", "nobody"}, []string{"name", "members", "emails"}},
		{"/projects/" + id(w.project) + "/roles", []string{"name", "", "permission", "member", "limit.memory_mib", "much"}, []string{"name", "limit-memory_mib"}},
		{"/account/password", []string{"current", "x", "password", "short", "password_again", "other"}, []string{"password", "password_again"}},
	} {
		page := root.page(422, "POST", c.page, c.form...)
		for _, field := range c.want {
			root.shows(page, `id="f-`+field+`-error"`)
		}
	}
}
