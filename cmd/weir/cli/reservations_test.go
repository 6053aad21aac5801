package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/handlers"
	"weir/models"
)

// A request is sent as it was given, its decision is shown, and a refusal has an exit code.
func TestReserve(t *testing.T) {
	at := time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)
	r := handlers.Reservation{ID: 7, State: models.ReservationGranted, Outcome: "partial", GPUs: 1, Cores: 50, Project: "vision", User: "Ann",
		StartsAt: at, EndsAt: at.Add(2 * time.Hour), Grants: []handlers.ReservationGrant{{Provider: "node", Number: 3, Model: "NVIDIA H100", Cores: 30,
			MemoryMiB: 1024, StartsAt: at, EndsAt: at.Add(time.Hour)}}}
	p := newFakeServer(t, map[string]http.HandlerFunc{"POST /reservations": jsonAnswer(r)})
	code, out, errOut := p.weir(t, strings.Fields(
		"reserve --project 1 --gpus 1 --cores 50 --time 2h --from 2027-01-31T10:00:00+01:00 --accept-part --qos preemptible")...)
	want := `POST /api/v1/reservations  {"project_id":1,"gpus":1,"cores":50,"duration_minutes":120,"from":"2027-01-31T09:00:00Z","accept_part":true,"qos":"preemptible"}`
	if code != ExitOK || last(p.requests()) != want {
		t.Errorf("exit code %d, %s\ngot  %s\nwant %s", code, errOut, last(p.requests()), want)
	}
	for _, words := range []string{"7   granted  partial   1     50", "node     3    NVIDIA H100  30     1 GiB"} {
		if !strings.Contains(out, words) {
			t.Errorf("no %q in\n%s", words, out)
		}
	}
	full := newFakeServer(t, map[string]http.HandlerFunc{"POST /reservations": problemAnswer(http.StatusConflict, "The earliest start is tomorrow.")})
	if code, _, errOut := full.weir(t, "reserve", "--project", "1", "--time", "2h"); code != ExitConflict || !strings.Contains(errOut, "tomorrow") {
		t.Errorf("a refusal: exit code %d, %s", code, errOut)
	}
}

// What is wrong with a command line is told at once, and nothing is asked of the portal.
func TestReservationCommandLines(t *testing.T) {
	p := newFakeServer(t, nil)
	for args, says := range map[string][]string{
		"reserve":                       {"--project", "--time"},
		"reserve --project 1 --time 0m": {"at least 1m"},
		"reserve --project 1 --time 1h --from soon --until -1": {"--from", "--until"},
		"reservations cancel x":                                {"not the ID of a reservation"},
		"reservations cancel 7 --no-interactive":               {"--yes"},
	} {
		code, _, errOut := p.weir(t, strings.Fields(args)...)
		for _, word := range says {
			if code != ExitUsage || !strings.Contains(errOut, word) {
				t.Errorf("weir %s: exit code %d; it says %s, not %q", args, code, errOut, word)
			}
		}
	}
	if len(p.requests()) > 0 {
		t.Errorf("the portal was asked %v", p.requests())
	}
}

func TestReservations(t *testing.T) {
	r := handlers.Reservation{ID: 7, State: models.ReservationCanceled, Reason: "Canceled by Ann."}
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /reservations": jsonAnswer(handlers.List[handlers.Reservation]{Items: []handlers.Reservation{r}}),
		"GET /reservations/7": jsonAnswer(r), "POST /reservations/7/cancel": jsonAnswer(r)})
	for args, want := range map[string]string{
		"reservations --project 3":          "GET /api/v1/reservations?limit=200&project_id=3&state=live",
		"reservations show 7":               "GET /api/v1/reservations/7",
		"reservations cancel 7 --yes":       "POST /api/v1/reservations/7/cancel",
		"reservations --state all -o table": "GET /api/v1/reservations?limit=200&state=all",
	} {
		if code, out, errOut := p.weir(t, strings.Fields(args)...); code != ExitOK || last(p.requests()) != want || !strings.Contains(out, "Canceled by Ann.") {
			t.Errorf("weir %s: exit code %d, %s, asked %s\n%s", args, code, errOut, last(p.requests()), out)
		}
	}
}

// A run in a reservation is one of its project.
func TestRunInReservation(t *testing.T) {
	r := handlers.Reservation{ID: 7, ProjectID: 3}
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /reservations/7": jsonAnswer(r), "POST /runs": jsonAnswer(handlers.Run{ID: 9})})
	code, out, errOut := p.weir(t, "run", "--reservation", "7", "--detach", "--", "true")
	if code != ExitOK || strings.TrimSpace(out) != "9" || !strings.Contains(last(p.requests()), `"project_id":3`) || !strings.Contains(last(p.requests()), `"reservation_id":7`) {
		t.Errorf("exit code %d, %s, asked %s\n%s", code, errOut, last(p.requests()), out)
	}
}
