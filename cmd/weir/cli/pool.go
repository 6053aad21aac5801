package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"weir/handlers"
	"weir/models"
	"weir/pool"
)

func newPoolCommand() *cobra.Command {
	return remoteCommand("pool", "Show the pool: its capacity, providers and queue", cobra.NoArgs, func(s *session, _ []string) error {
		return send(s, http.MethodGet, "/pool", nil, "", poolTable)
	})
}

func poolTable(t *table, p handlers.Pool) {
	t.field("GPUs", p.Totals.GPUs)
	t.field("GPU cores", fmt.Sprintf("%d available, %d in use, %d total; at most %d available on one GPU",
		p.Totals.FreeCores, p.Totals.CoresInUse, p.Totals.Cores, p.Totals.LargestFreeCores))
	t.field("GPU memory", fmt.Sprintf("%s available, %s in use", mib(p.Totals.FreeMemoryMiB), mib(p.Totals.MemoryMiBInUse)))
	t.field("GPU utilization", computing(p.Computing))
	t.field("Allocations", p.Decided)
	if len(p.Providers) > 0 {
		providersTable(t, p.Providers)
	}
	if len(p.Waiting) == 0 {
		t.line("")
		t.line("The queue is empty.")
	} else {
		waitingTable(t, p.Waiting)
	}
	if len(p.Unmet) > 0 {
		unmetTable(t, p.Unmet)
	}
}

func computing(percent *int64) string {
	if percent == nil {
		return "not measured"
	}
	return fmt.Sprintf("%d%% on average", *percent)
}

func waitingTable(t *table, waiting []handlers.QueueEntry) {
	t.section("POSITION", "USER", "PROJECT", "WORKSPACE", "REQUEST", "SINCE", "ESTIMATED START", "BEHIND BY", "REASON")
	for _, w := range waiting {
		name := w.Workspace
		if w.WorkspaceID != 0 {
			name = strings.TrimSpace(fmt.Sprintf("%d %s", w.WorkspaceID, name))
		}
		t.row(w.Position, w.User, w.Project, name, demandText(w.Demand), moment(w.Since), estimate(w.Estimate), w.Behind, w.Reason)
	}
}

// demandText formats the number, size and model of a demand's GPUs.
func demandText(d models.Demand) string {
	if d.GPUs == 0 {
		return "no GPU"
	}
	text := pool.DescribeDemand(d).String()
	if d.GPUModel != "" {
		text += " of " + d.GPUModel
	}
	return text
}

// estimate formats an estimated start. A tilde marks one that is based on the
// durations of past shares.
func estimate(f handlers.Estimate) string {
	if f.Outcome == "placed" && !f.Known {
		return "~ " + f.Text
	}
	return f.Text
}

func unmetTable(t *table, unmet []handlers.Unmet) {
	t.section("UNMET DEMAND", "GPUS", "CORES EACH", "WAITING", "REFUSED TODAY", "OLDEST")
	for _, u := range unmet {
		t.row(cmp.Or(u.Model, "any model"), u.GPUs, u.Cores, u.Waiting, u.Refused, momentOr(u.Oldest, ""))
	}
}
