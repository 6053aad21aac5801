package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// GPU core hours and their cost by page, over REST and as a file: a share of an hour of
// 50 cores, with a price for its second half.
func TestAccountingByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	day := w.store.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
	workspace := w.get(w.member, path("workspaces", w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)))
	user := int64(workspace.body["user_id"].(float64))
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		return q.CreateShare(&models.Share{DeviceID: w.device, HolderID: 1, ProjectID: w.project, UserID: user, Cores: 50, Enforcement: models.EnforcedAdvisory,
			From: day.Add(2 * time.Hour), Until: new(day.Add(3 * time.Hour))})
	})
	span := "?from=" + day.Format(time.DateOnly) + "&until=" + day.Format(time.DateOnly)
	root, ann, at := w.visitor("ada@example.org", true), w.as("ann@example.org"), path("projects", w.project)
	root.shows(root.page(200, "GET", "/accounting"+span), "50.00 GPU core hours were allocated.", "vision", "not measured", "simulated", "!Cost")

	w.problem(w.want(403, w.manager, "POST", "/prices", price("", "")))
	for body, field := range map[string]string{price("model", "NVIDIA X"): "model", price("currency", " "): "currency", price("valid_from", "1969-01-01T00:00:00Z"): "valid_from"} {
		if fields := w.problem(w.want(422, w.admin, "POST", "/prices", body)); fields[field] == "" {
			t.Errorf("%s: %s is not named: %v", body, field, fields)
		}
	}
	w.want(200, w.admin, "POST", "/prices", price("valid_from", day.Add(150*time.Minute).Format(time.RFC3339)))
	if fields := w.problem(w.want(422, w.admin, "POST", "/prices", price("valid_from", day.Add(160*time.Minute).Format(time.RFC3339)))); fields["valid_from"] == "" {
		t.Errorf("a price of the past can be replaced: %v", fields)
	}
	root.page(422, "POST", "/prices", "model", "NVIDIA H200", "billing", "on_demand", "micros", "1.2345678", "currency", "EUR")
	root.page(422, "POST", "/prices", "model", "NVIDIA H200", "billing", "reserved", "micros", "1", "currency", "USD")
	root.page(303, "POST", "/prices", "model", "NVIDIA H200", "billing", "reserved", "micros", "0.008", "currency", "EUR")
	root.shows(root.page(200, "GET", "/prices"), "0.02 EUR", "0.008 EUR", "in force")
	root.shows(root.page(200, "GET", "/prices/new"), "NVIDIA H200")
	if list := w.get(w.admin, "/prices").body["items"].([]any); len(list) != 2 {
		t.Errorf("%d prices", len(list))
	}

	root.shows(root.page(200, "GET", "/accounting"+span+"&group=model"), "50.00 GPU core hours were allocated, for 0.50 EUR.", "NVIDIA H200", "25.00", "0.50 EUR")
	u := w.get(w.admin, "/accounting"+span)
	first := u.body["items"].([]any)[0].(map[string]any)
	if first["name"] != "vision" || first["gpu_core_milliseconds"] != 180e6 || first["unpriced_gpu_core_milliseconds"] != 90e6 || first["cost_micros"] != 5e5 || first["simulated"] != true {
		t.Errorf("%s", u.raw)
	}
	w.member = w.token("ann@example.org")
	ann.shows(ann.page(200, "GET", at+"/accounting"+span), "Accounting of vision", "you see your own", "50.00")
	if file := w.get(w.member, at+"/accounting.csv"+span+"&group=holder").raw; !strings.Contains(file, "\n1,workspace,180000000,50.00,0,90000000,500000,EUR,0,0,true,0\n") {
		t.Errorf("the file: %s", file)
	}
	for filter, want := range map[string]string{"": "50.00", "&user_id=" + id(user): "50.00", "&model=NVIDIA+H200&billing=on_demand&holder=workspace": "50.00",
		"&user_id=" + id(user+100): "0.00", "&model=NVIDIA+X": "0.00", "&holder=run": "0.00", "&billing=reserved": "0.00"} {
		root.shows(root.page(200, "GET", "/accounting"+span+"&group=model"+filter), want+" GPU core hours were allocated")
		hours := w.get(w.admin, "/accounting"+span+"&group=member"+filter).body["total"].(map[string]any)["gpu_core_milliseconds"].(float64) / 3_600_000
		if fmt.Sprintf("%.2f", hours) != want {
			t.Errorf("%s: %v hours", filter, hours)
		}
	}
	root.shows(root.page(200, "GET", at+"/accounting"+span+"&user_id="+id(user)), "Member: ann@example.org", "Remove filter", `name="user_id" value="`+id(user)+`"`)
	for filter, field := range map[string]string{"user_id=0": "user_id", "billing=free": "billing", "holder=reservation": "holder"} {
		if fields := w.problem(w.want(422, w.admin, "GET", "/accounting?"+filter, "")); fields[field] == "" {
			t.Errorf("%s: %v", filter, fields)
		}
	}
	root.shows(root.page(422, "GET", "/accounting?user_id=x"), "user_id: must be a whole number")
	root.page(422, "GET", "/accounting?billing=free")
	w.problem(w.want(403, w.member, "GET", at+"/accounting?user_id="+id(user+1), ""))
	w.reservedUnused(user, day.Add(4*time.Hour)) // 10 cores for an hour
	if got := w.get(w.admin, "/accounting"+span+"&model=NVIDIA+X").body["total"].(map[string]any)["reserved_unused_gpu_core_milliseconds"]; got != 0.0 {
		t.Errorf("%v of another model are reserved and unused", got)
	}
	if got := w.get(w.admin, "/accounting"+span+"&billing=reserved").body["total"].(map[string]any)["reserved_unused_gpu_core_milliseconds"]; got != 36e6 {
		t.Errorf("%v are reserved and unused", got)
	}
	total := w.get(w.admin, "/accounting"+span)
	if got := total.body["total"].(map[string]any)["reserved_unused_gpu_core_milliseconds"]; got != 36e6 {
		t.Errorf("%v are reserved and unused: %s", got, total.raw)
	}
	root.shows(root.page(200, "GET", "/accounting"+span), "Reserved, unused", ">10.00<")
	if file := w.get(w.admin, "/accounting.csv"+span).raw; !strings.Contains(file, ",true,36000000\n") {
		t.Errorf("the file of all: %s", file)
	}
	w.problem(w.want(403, w.manager, "GET", "/accounting", ""))
	w.problem(w.want(422, w.admin, "GET", "/accounting?group=color", ""))
	root.page(422, "GET", "/accounting?group=color")
}

// reservedUnused adds a reservation of 10 cores for an hour of the past that nothing used.
func (w *world) reservedUnused(user int64, from time.Time) {
	w.Helper()
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		m, err := q.LaunchMember(w.project, user)
		if err != nil {
			return err
		}
		r := models.Reservation{ProjectID: w.project, MemberID: m.ID, UserID: user, State: models.ReservationDone, Outcome: "granted", GPUs: 1, Cores: 10,
			Class: models.ClassNormal, QoS: models.QoSStandard, TaskType: models.TaskBatch, StartsAt: from, EndsAt: from.Add(time.Hour), Version: 1,
			CreatedAt: from, EndedAt: new(from.Add(time.Hour))}
		return q.CreateReservations([]models.Reservation{r}, [][]models.ReservationGrant{{{DeviceID: w.device, Cores: 10, StartsAt: r.StartsAt, EndsAt: r.EndsAt}}})
	})
}

// price is a price as JSON, with one field changed or added.
func price(field, value string) string {
	fields := map[string]any{"model": "NVIDIA H200", "billing": "on_demand", "micros": 20_000, "currency": "EUR"}
	if field != "" {
		fields[field] = value
	}
	text, _ := json.Marshal(fields) // of strings and numbers
	return string(text)
}
