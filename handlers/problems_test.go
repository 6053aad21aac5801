package handlers

import (
	"strings"
	"testing"
)

// A form with several mistakes, of which some are found while it is read and others by the
// service, shows all of them at once.
func TestAllProblemsAtOnce(t *testing.T) {
	w := newWorld(t)
	root, ann := w.visitor("ada@example.org", true), w.as("ann@example.org")
	asked := w.create(w.stranger, "/requests", `{"project":{"name":"audio","quota":`+some+`,"limit":`+slice+`},"reason":"speech"}`)
	for _, c := range []struct {
		by   visitor
		page string
		form []string
		want []string
	}{
		{root, "/projects", []string{"name", " ", "quota.gpu_cores", "many", "priority", "500"}, []string{"name", "quota-gpu_cores", "priority"}},
		{root, "/projects/" + id(w.project), []string{"name", "", "quota.cpu_milli", "some", "version", "1"}, []string{"name", "quota-cpu_milli"}},
		{root, "/projects/start", []string{"name", "", "members", "many", "emails", "nobody"}, []string{"name", "members", "emails"}},
		{root, "/projects/" + id(w.project) + "/roles", []string{"name", "", "permission", "member", "limit.memory_mib", "much"}, []string{"name", "limit-memory_mib"}},
		{root, "/account/password", []string{"current", "x", "password", "short", "password_again", "other"}, []string{"password", "password_again"}},
		{root, "/environments", []string{"name", "", "minimum.gpus", "many", "command", "jupyter"}, []string{"name", "minimum-gpus", "command"}},
		{root, "/environments/" + id(w.environment), []string{"name", "", "versions", "torch", "version", "1"}, []string{"name", "versions"}},
		{root, "/pool/providers", []string{"gpu_code", "short", "owner_id", "nobody@example.org"}, []string{"gpu_code", "owner_id"}},
		{root, "/pool/providers/1", []string{"name", "", "cores", "many", "time_zone", "here"}, []string{"name", "cores", "time_zone"}},
		{root, "/pool/providers/1/recall", []string{"recall.grace_minutes", "soon", "recall.reason", strings.Repeat("x", 501)},
			[]string{"recall-grace_minutes", "recall-reason"}},
		{ann, "/requests", []string{"kind", "project", "project.name", "", "project.quota.gpu_cores", "many", "reason", ""},
			[]string{"project-name", "project-quota-gpu_cores", "reason"}},
		{root, "/requests/" + id(asked), []string{"decision", "approve", "project.name", "", "project.quota.gpu_cores", "many"},
			[]string{"project-name", "project-quota-gpu_cores"}},
		{ann, "/reservations", []string{"project_id", id(w.project), "gpus", "many", "cores", "101", "duration_minutes", "60"}, []string{"gpus", "cores"}},
		{ann, "/runs", []string{"project_id", id(w.project), "cores", "many", "gpus", "2000", "command", ""}, []string{"cores", "gpus", "command"}},
		{ann, "/workspaces", []string{"project_id", id(w.project), "cores", "many", "gpus", "2000"}, []string{"cores", "gpus"}},
		{ann, "/graphs", []string{"graph", "branches: 1", "cpus", "8", "utilization", "many"}, []string{"graph", "utilization"}},
	} {
		page := c.by.page(422, "POST", c.page, c.form...)
		for _, field := range c.want {
			c.by.shows(page, `id="f-`+field+`-error"`)
		}
	}
}
