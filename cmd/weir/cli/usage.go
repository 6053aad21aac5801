package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"weir/handlers"
	"weir/models"
)

func newUsageCommand() *cobra.Command {
	var project int64
	var user int64
	var from, until, group, gpuModel, holder, billing string
	cmd := remoteCommand("usage", "Show GPU core hours and their cost", cobra.NoArgs, func(s *session, _ []string) error {
		path := "/accounting"
		if project != 0 {
			path = fmt.Sprintf("/projects/%d/accounting", project)
		}
		query := url.Values{"limit": {fmt.Sprint(pageSize)}}
		if user != 0 {
			query.Set("user_id", fmt.Sprint(user))
		}
		for name, value := range map[string]string{"from": from, "until": until, "group": group, "model": gpuModel, "holder": holder,
			"billing": billing} {
			if value != "" {
				query.Set(name, value)
			}
		}
		return send(s, http.MethodGet, path+"?"+query.Encode(), nil, "", usageTable)
	})
	cmd.Flags().Int64Var(&project, "project", 0, "project `ID`; default: all projects, for administrators and auditors")
	cmd.Flags().StringVar(&from, "from", "", "start, a `DATE` in UTC or an RFC 3339 time; default: 30 days before the end")
	cmd.Flags().StringVar(&until, "until", "", "end, a `DATE` in UTC, which is included, or an RFC 3339 time; default: now")
	cmd.Flags().Int64Var(&user, "user", 0, "only shares of the user with this `ID`")
	cmd.Flags().StringVar(&gpuModel, "gpu-model", "", "only shares of this GPU `MODEL`")
	cmd.Flags().StringVar(&holder, "holder", "", "only shares of a `KIND`: workspace, run or deployment")
	cmd.Flags().StringVar(&billing, "billing", "", "only shares of a billing `MODEL`: on_demand, reserved or preemptible")
	cmd.Flags().StringVar(&group, "by", "", "`GROUP` of the sums: project, member, model, holder or billing")
	return cmd
}

func usageTable(t *table, a handlers.Accounting) {
	t.section(strings.ToUpper(a.Group), "GPU CORE HOURS", "RESERVED", "RESERVED UNUSED", "USED OF MEASURED",
		"COST", "WITHOUT PRICE", "SIMULATED")
	a.Total.Name = "total"
	for _, g := range append(a.Items, a.Total) {
		cost, unpriced, used := "", "", "not measured"
		if a.Currency != "" {
			cost, unpriced = models.Money(g.Cost, a.Currency), models.CoreHours(g.UnpricedMS)
		}
		if g.MeasuredMS > 0 {
			used = models.CoreHours(g.UsedMS) + "/" + models.CoreHours(g.MeasuredMS)
		}
		t.row(g.Name, models.CoreHours(g.CoreMS), models.CoreHours(g.ReservedMS), models.CoreHours(g.ReservedUnusedMS),
			used, cost, unpriced, g.Simulated)
	}
	if a.NextCursor != "" {
		t.line("There are more groups. Download all of them as CSV.")
	}
}
