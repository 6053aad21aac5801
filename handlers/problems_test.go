package handlers

import (
	"strings"
	"testing"
	"time"
)

// A form with several mistakes, of which some are found while it is read and others by the
// service, shows all of them at once.
func TestAllProblemsAtOnce(t *testing.T) {
	w := newWorld(t)
	asked := w.create(w.stranger, "/requests", `{"project":{"name":"audio","quota":`+some+`,"limit":`+slice+`},"reason":"speech"}`)
	reservation := w.create(w.member, "/reservations", `{"project_id":`+id(w.project)+`,"gpus":1,"cores":10,"duration_minutes":60,"from":"`+
		time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)+`"}`)
	watcher := w.create(w.manager, "/projects/"+id(w.project)+"/roles", `{"name":"watcher","permission":"viewer","limit":{}}`)
	service := int64(w.want(201, w.manager, "POST", "/projects/"+id(w.project)+"/service-accounts",
		`{"name":"nightly","role_id":`+id(watcher)+`}`).body["id"].(float64))
	root, ann := w.visitor("ada@example.org", true), w.as("ann@example.org")
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
		{ann, "/reservations/" + id(reservation) + "/change", []string{"starts_at", "soon", "ends_at", "2020-01-01T00:00"}, []string{"starts_at", "ends_at"}},
		{root, "/prices", []string{"model", "none", "billing", "on_demand", "currency", "", "micros", "dear"}, []string{"micros", "model", "currency"}},
		{root, "/capacity", []string{"ratio.gpu_cores", "many", "ratio.cpu_milli", "0", "ratio.gpu_memory_mib", "1", "ratio.memory_mib", "1",
			"ratio.storage_mib", "1", "stated.memory_mib", "much"}, []string{"ratio-gpu_cores", "ratio-cpu_milli", "stated-memory_mib"}},
		{root, "/tokens", []string{"name", "", "lifetime", "long"}, []string{"name", "lifetime"}},
		{root, "/projects/" + id(w.project) + "/members/" + id(service) + "/tokens", []string{"name", "", "lifetime", "long"}, []string{"name", "lifetime"}},
		{root, "/projects/" + id(w.project) + "/service-accounts", []string{"name", "Not a name", "role_id", id(w.role), "until", "soon"},
			[]string{"name", "until"}},
		{root, "/projects/" + id(w.project) + "/service-accounts", []string{"name", "Not a name", "role_id", id(w.role), "until", "2020-01-01"},
			[]string{"name", "until"}},
		{ann, "/deployments", []string{"project_id", id(w.project), "path", "/x", "parts", "many", "cores", "101", "update_strategy", "never"},
			[]string{"parts", "cores", "update_strategy"}},
		{ann, "/deployments", []string{"project_id", id(w.project), "path", "/x", "reservation_id", id(reservation + 1)}, []string{"reservation_id"}},
		{ann, "/barriers", []string{"ptx", "", "threads", "many"}, []string{"ptx", "threads"}},
		{ann, "/graphs", []string{"graph", "branches: 1", "cpus", "8", "utilization", "many"}, []string{"graph", "utilization"}},
	} {
		page := c.by.page(422, "POST", c.page, c.form...)
		for _, field := range c.want {
			c.by.shows(page, `id="f-`+field+`-error"`)
		}
	}
	for _, c := range []struct {
		by   visitor
		page string
		want []string
	}{
		{root, "/pool/planning?add=h100&days=many&policy=none", []string{"add", "days"}},
		{root, "/audit?object_id=many&project_name=none", []string{"object_id", "project_name"}},
		{ann, w.filesPage("/model", "") + "&batch=many&context=99999999999", []string{"batch", "context"}},
	} {
		page := c.by.page(422, "GET", c.page)
		for _, field := range c.want {
			c.by.shows(page, `id="f-`+field+`-error"`)
		}
	}
}
