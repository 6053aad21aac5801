package e2e

import (
	"fmt"
	"testing"
	"time"

	"weir/handlers"
)

// A server that dies at any step of a reservation has reserved, begun or ended it wholly or not at all.
func TestReservationFailpoints(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"created", "committed", "begun", "ended"} {
		t.Run(step, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, o options) { reservedAt(t, o, step) })
		})
	}
}

func reservedAt(t *testing.T, o options, step string) {
	o.gpus = "h100:1"
	s := newServer(t, o)
	whole := share
	whole.GPUCores, whole.GPUMemoryMiB = 100, 80<<10
	team := s.team("careful", whole, "ada")
	ada := team.Members[0]
	body := map[string]any{"project_id": team.Project, "gpus": 1, "cores": 100, "duration_minutes": 60, "from": time.Now().Add(time.Hour)}
	reserve := func() (r handlers.Reservation) {
		t.Helper()
		ada.must("POST", "/reservations", body, &r)
		return r
	}
	cancel := func(id int64) string { return fmt.Sprintf("/reservations/%d/cancel", id) }
	var before handlers.Reservation
	if step == "ended" {
		before = reserve()
	}
	s.stop()
	s.start("WEIR_FAILPOINT=reservation." + step)
	switch step {
	case "ended":
		ada.call("POST", cancel(before.ID), nil, nil)
	case "begun":
		body["from"] = time.Now().Add(2 * time.Second)
		before = reserve()
	default:
		ada.call("POST", "/reservations", body, nil)
	}
	if code := s.wait(); code != -1 {
		t.Fatalf("the server ended with exit code %d and not at %s", code, step)
	}
	s.start()
	if step == "created" {
		if all := list[handlers.Reservation](ada.api, "/reservations?state=all"); len(all) != 0 {
			t.Errorf("what was not answered has reserved %+v", all)
		}
		before = reserve() // nothing else holds the GPU
	}
	all := list[handlers.Reservation](ada.api, "/reservations?state=all")
	if len(all) != 1 || len(all[0].Grants) != 1 || all[0].Grants[0].Cores != 100 {
		t.Fatalf("it has reserved %+v", all)
	}
	if status := ada.call("POST", "/reservations", body, nil); status != 409 {
		t.Errorf("the same GPU is reserved again: %d", status)
	}
	if step == "begun" {
		eventually(t, starting, func() string {
			if ada.must("GET", fmt.Sprintf("/reservations/%d", before.ID), nil, &before); before.State != "active" {
				return "it is " + string(before.State)
			}
			return ""
		})
		if told := ada.told("reservation.active"); told != 1 {
			t.Errorf("its user was told %d times that it has begun", told)
		}
	}
	ada.must("POST", cancel(all[0].ID), nil, nil)
	if status := ada.call("POST", cancel(all[0].ID), nil, nil); status != 409 {
		t.Errorf("it can be canceled twice: %d", status)
	}
	reserve()
}
