package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/pool/broker"
)

// reserveFlags are the flags of weir reserve.
type reserveFlags struct {
	broker.ReservationInput
	duration, from, until string
	preview               bool
}

func newReserveCommand() *cobra.Command {
	var f reserveFlags
	cmd := remoteCommand("reserve", "Reserve GPUs for a span of time, now or later", cobra.NoArgs, func(s *session, _ []string) error {
		if err := f.parse(time.Now()); err != nil {
			return err
		}
		if f.preview {
			return send(s, http.MethodPost, "/reservations/preview", f.ReservationInput, "", decisionTables)
		}
		res, err := s.once("/reservations", f.ReservationInput)
		if err != nil {
			return err
		}
		var r handlers.Reservation
		if err := decode(s.client, res.body, &r); err != nil {
			return err
		}
		return s.show(res.body, func(t *table) { reservationTables(t, r) })
	})
	f.bind(cmd.Flags())
	return cmd
}

func (f *reserveFlags) bind(flags *pflag.FlagSet) {
	flags.Int64Var(&f.ProjectID, "project", 0, "project `ID`")
	flags.Int64Var(&f.GPUs, "gpus", 1, "`NUMBER` of GPUs, all of one machine")
	flags.Int64Var(&f.Cores, "cores", 100, "GPU `CORES` per GPU; a whole GPU is 100 cores")
	flags.Int64Var(&f.GPUMemoryMiB, "gpu-memory", 0, "GPU memory per GPU in `MIB`; default: in proportion to the cores")
	flags.StringVar(&f.GPUModel, "gpu-model", "", "GPU `MODEL`; default: any")
	flags.StringVar(&f.duration, "time", "", "`DURATION` of the reservation, such as 30m or 2h")
	flags.StringVar(&f.from, "from", "", "earliest start, an RFC 3339 `TIME` or a duration from now, such as 2h; default: now")
	flags.StringVar(&f.until, "until", "", "latest end, an RFC 3339 `TIME` or a duration from now; default: 7 days after the earliest start and the duration")
	flags.BoolVar(&f.AcceptPart, "accept-part", false, "accept a part at the earliest start and the rest later")
	flags.BoolVar(&f.AcceptLater, "accept-later", false, "accept a later start")
	flags.BoolVar(&f.preview, "preview", false, "print the decision, and reserve nothing")
	flags.StringVar(&f.ClientZone, "client-zone", "", "client `ZONE` near which GPUs are preferred; default: that of your address")
	flags.StringVar((*string)(&f.Class), "class", "", "priority `CLASS`: high, normal or low; default: normal")
	flags.StringVar((*string)(&f.QoS), "qos", "", "QoS `LEVEL`: guaranteed, standard, best_effort or preemptible; default: standard")
	flags.StringVar((*string)(&f.TaskType), "task", "", "task `TYPE`: interactive, inference, training or batch; default: interactive")
}

// parse checks the flags and completes the request.
func (f *reserveFlags) parse(now time.Time) (err error) {
	var problems []string
	add := func(flag string, err error) {
		if err != nil {
			problems = append(problems, "--"+flag+": "+err.Error())
		}
	}
	if f.ProjectID == 0 {
		problems = append(problems, "no project: set --project")
	}
	f.DurationMinutes, err = parseMinutes(f.duration)
	if err == nil && f.DurationMinutes == 0 {
		err = fmt.Errorf("must be at least 1m")
	}
	add("time", err)
	f.From, err = parseMoment(f.from, now)
	add("from", err)
	f.Until, err = parseMoment(f.until, now)
	add("until", err)
	if problems != nil {
		return &config.UsageError{Problems: problems}
	}
	return nil
}

// parseMoment parses a time, or a duration from now; nil if it is empty.
func parseMoment(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return new(now.Add(d).UTC()), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("%q must be a time such as 2027-01-31T09:00:00Z, or a duration such as 2h", text)
	}
	return new(at.UTC()), nil
}

func newReservationsCommand() *cobra.Command {
	cmd := listCommand("reservations", "live", reservationsTable)
	cmd.AddCommand(
		reservationCommand("show", "Show a reservation with its GPUs", http.MethodGet, ""),
		newChangeReservationCommand(),
		confirmable(reservationCommand("cancel", "Cancel a reservation; workspaces in it are stopped", http.MethodPost, "/cancel")))
	return cmd
}

// reservationCommand is a command that sends one request about a reservation and shows it.
func reservationCommand(name, short, method, path string) *cobra.Command {
	return remoteCommand(name+" RESERVATION", short, cobra.ExactArgs(1), func(s *session, args []string) error {
		id, err := parseID(args[0], "reservation")
		if err != nil {
			return err
		}
		if method != http.MethodGet {
			if err := s.confirm("Reservation %d will be canceled, and workspaces in it will be stopped.", id); err != nil {
				return err
			}
		}
		return send(s, method, fmt.Sprintf("/reservations/%d", id)+path, nil, "", reservationTables)
	})
}

// newChangeReservationCommand moves, extends or shortens a reservation, or tells what would be decided.
func newChangeReservationCommand() *cobra.Command {
	var start, end string
	var preview bool
	cmd := remoteCommand("change RESERVATION", "Move, extend or shorten a reservation of yours", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			id, err := parseID(args[0], "reservation")
			if err != nil {
				return err
			}
			var in broker.ReservationChange
			if in.StartsAt, err = parseMoment(start, time.Now()); err != nil {
				return config.Usagef("--start: %v", err)
			}
			if in.EndsAt, err = parseMoment(end, time.Now()); err != nil {
				return config.Usagef("--end: %v", err)
			}
			if in.StartsAt == nil && in.EndsAt == nil {
				return config.Usagef("nothing to change: set --start or --end")
			}
			path := fmt.Sprintf("/reservations/%d", id)
			if preview {
				return send(s, http.MethodPost, path+"/preview", in, "", decisionTables)
			}
			return send(s, http.MethodPatch, path, in, "", reservationTables)
		})
	f := cmd.Flags()
	f.StringVar(&start, "start", "", "new start, before the reservation begins: an RFC 3339 `TIME` or a duration from now; default: unchanged")
	f.StringVar(&end, "end", "", "new end, an RFC 3339 `TIME` or a duration from now; default: the duration is unchanged")
	f.BoolVar(&preview, "preview", false, "print the decision, and change nothing")
	return cmd
}

// decisionTables are a decision with its GPUs, or why there are none.
func decisionTables(t *table, d handlers.ReservationDecision) {
	t.section("DECISION", "EARLIEST", "FREE UNTIL", "CHANGES")
	t.row(d.Outcome, momentOr(d.Earliest, "-"), momentOr(d.Latest, "-"), d.Moves)
	grantsTable(t, d.Grants)
	if len(d.Conflicts) > 0 {
		t.section("CONFLICT", "PROJECT", "USER", "GPUS", "CORES", "STARTS", "ENDS")
		for _, c := range d.Conflicts {
			t.row(c.ID, c.Project, c.User, c.GPUs, c.Cores, moment(c.StartsAt), moment(c.EndsAt))
		}
	}
}

func reservationsTable(t *table, list []handlers.Reservation) {
	t.section("ID", "STATE", "DECISION", "GPUS", "CORES", "STARTS", "ENDS", "PROJECT", "USER", "REASON")
	for _, r := range list {
		t.row(r.ID, r.State, r.Outcome, r.GPUs, r.Cores, moment(r.StartsAt), moment(r.EndsAt), r.Project, r.User, r.Reason)
	}
}

// reservationTables are a reservation and its GPUs.
func reservationTables(t *table, r handlers.Reservation) {
	reservationsTable(t, []handlers.Reservation{r})
	grantsTable(t, r.Grants)
}

func grantsTable(t *table, grants []handlers.ReservationGrant) {
	t.section("MACHINE", "GPU", "MODEL", "CORES", "MEMORY", "STARTS", "ENDS")
	for _, g := range grants {
		t.row(g.Provider, g.Number, modelWords(g.Model, g.Simulated), g.Cores, mib(g.MemoryMiB), moment(g.StartsAt), moment(g.EndsAt))
	}
}

// projectOf sets a project that was not named to that of a reservation, if there is one.
func (s *session) projectOf(project *int64, reservation int64) error {
	if *project != 0 || reservation == 0 {
		return nil
	}
	r, _, err := fetch[handlers.Reservation](s, s.client, fmt.Sprintf("/reservations/%d", reservation))
	*project = r.ProjectID
	return err
}
