package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/handlers"
)

// A member reserves a GPU from a shell and runs commands on it, which nobody else can have until the reservation
// ends: then what runs in it is ended, and the GPU is free again.
func TestReservation(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:1"})
	whole := share.times(2)
	whole.GPUCores, whole.GPUMemoryMiB = 200, 160<<10
	team := s.team("planners", whole, "ada", "bob")
	ada, bob := team.Members[0], team.Members[1]
	shA, shB, project := s.shell(ada.token), s.shell(bob.token), fmt.Sprint(team.Project)
	flags := []string{"--project", project, "--cpu", "250", "--memory", "128"}
	gpu := append([]string{"--gpus", "1", "--cores", "100", "--gpu-memory", fmt.Sprint(80 << 10)}, flags...)

	var r handlers.Reservation
	shA.read(&r, "reserve", "--project", project, "--time", "30m")
	if r.State != "active" || r.Outcome != "granted" || len(r.Grants) != 1 || r.EndsAt.Sub(r.StartsAt) != 30*time.Minute {
		t.Fatalf("it reserves %+v", r)
	}
	_, why := shB.run(5, "reserve", "--project", project, "--time", "30m", "--until", "45m")
	_, earliest, _ := strings.Cut(why, "The earliest start is ")
	at, err := time.Parse("2006-01-02 15:04 MST", strings.TrimSuffix(strings.TrimSpace(earliest), "."))
	if err != nil {
		t.Fatal(err)
	}
	var preview handlers.ReservationDecision
	shB.read(&preview, "reserve", "--preview", "--project", project, "--time", "30m", "--until", "45m")
	if preview.Outcome != "refused" || preview.Earliest == nil || len(preview.Conflicts) != 1 || preview.Conflicts[0].GPUs != 1 {
		t.Errorf("a preview: %+v", preview)
	}
	shA.read(&preview, "reservations", "change", fmt.Sprint(r.ID), "--preview", "--end", r.EndsAt.Add(time.Hour).Format(time.RFC3339))
	if preview.Outcome != "granted" || len(preview.Grants) != 1 {
		t.Errorf("a preview of a longer reservation: %+v", preview)
	}
	shA.read(&r, "reservations", "change", fmt.Sprint(r.ID), "--end", r.EndsAt.Add(-5*time.Minute).Format(time.RFC3339))
	if r.DurationMinutes != 25 || r.EndsAt.Sub(r.StartsAt) > 25*time.Minute {
		t.Errorf("shortened: %+v", r)
	}
	shA.fails(2, "nothing to change: set --start or --end", "reservations", "change", fmt.Sprint(r.ID))
	var later handlers.Reservation
	shB.read(&later, "reserve", "--project", project, "--time", "30m", "--from", at.Format(time.RFC3339))
	if later.State != "granted" || later.Outcome != "granted" || later.StartsAt.Before(r.EndsAt) {
		t.Errorf("after it, %+v is reserved", later)
	}
	shB.fails(5, "at most 0 available; the rest is reserved", append(append([]string{"run", "--when-insufficient", "refuse"}, gpu...), "--", "true")...)

	in := append([]string{"run", "--reservation", fmt.Sprint(r.ID)}, flags[2:]...)
	out, _ := shA.run(7, append(in, "--", "/bin/sh", "-c", "echo on $CUDA_VISIBLE_DEVICES; exit 7")...)
	if !strings.HasPrefix(out, "on ") || len(strings.TrimSpace(out)) < 4 {
		t.Errorf("in the reservation, it prints %q", out)
	}
	shB.fails(2, "is not one of your reservations in this project", append(append([]string{"run", "--reservation", fmt.Sprint(r.ID)}, flags[2:]...), "--", "true")...)
	goes := ada.begins(append(in, "--", "/bin/sh", "-c", "echo waits; exec sleep 600")...)
	goes.prints("waits")
	shA.says([]string{"canceled"}, "reservations", "cancel", fmt.Sprint(r.ID), "--yes")
	goes.notes("reservation")
	goes.exits(143)
	shB.says([]string{"canceled"}, "reservations", "cancel", fmt.Sprint(later.ID), "--yes")
	bob.begins(append(append([]string{"run"}, gpu...), "--", "true")...).exits(0)
	shA.says([]string{"canceled"}, "reservations", "--state", "all")
}
