package e2e

import (
	"fmt"

	"weir/handlers"
)

// measures waits until so many requests are counted, with the time and the memory of the parts.
func (d served) measures(succeeded int64) {
	d.t.Helper()
	eventually(d.t, starting, func() string {
		var m handlers.DeploymentMetrics
		d.m.must("GET", fmt.Sprintf("/deployments/%d/metrics?span=day", d.id), nil, &m)
		parts := d.get().Parts
		known := m.Total.Duration != nil && m.Total.FirstToken != nil && m.Total.Busy != nil && len(m.Parts) == len(parts)
		for i, p := range parts {
			known = known && p.MaxMemory > 10<<20 && m.Parts[i].Busy != nil && *m.Parts[i].Busy > 0
		}
		if known && m.Total.Succeeded == succeeded && m.Total.Failed == 0 && m.Total.Outputs > 12*(succeeded-1) && m.Total.InputTokens == 21*succeeded &&
			m.Total.FirstToken.Median <= m.Total.Duration.Median {
			return ""
		}
		return fmt.Sprintf("%+v of %+v", m.Total, parts)
	})
}
