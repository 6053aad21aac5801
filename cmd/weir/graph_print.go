package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"weir/models"
)

// printedPlan is a plan of a graph, as text or JSON.
type printedPlan struct{ models.GraphPlan }

func (p printedPlan) String() string {
	var out strings.Builder
	fmt.Fprintln(&out, p.Reason)
	if p.Relative {
		fmt.Fprintln(&out, "Times are ratios: the graph has neither seconds nor flops_per_second.")
	}
	fmt.Fprintln(&out)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\tbranch\ton one CPU\tshare\tCPUs\tstart\tend\tafter")
	for i, s := range p.Stages {
		for _, one := range s.Shares {
			assumed := ""
			if one.Assumed {
				assumed = "?"
			}
			fmt.Fprintf(w, "%d\t%s\t%s%s\t%.2f\t%s\t%s\t%s\t%s\n", i+1, one.Branch, p.seconds(one.Seconds), assumed, one.Exact,
				cpuList(one.CPUs), p.seconds(s.From), p.seconds(one.Until), strings.Join(one.After, " "))
		}
	}
	_ = w.Flush() // a strings.Builder has no errors
	fmt.Fprintf(&out, "\nPlanned: %s. One operator after another on one CPU: %s. Equal shares: %s.",
		p.seconds(p.Makespan), p.seconds(p.Serial), p.seconds(p.Equal))
	return out.String()
}

// seconds formats a time, or a ratio of times.
func (p printedPlan) seconds(s float64) string {
	if p.Relative {
		return fmt.Sprintf("%.3g", s)
	}
	return fmt.Sprintf("%.2f s", s)
}

// cpuList is the numbers of CPUs: their ranges, and how many they are.
func cpuList(ids []int) string {
	return fmt.Sprintf("%s (%d)", models.Ranges(ids), len(ids))
}
