package web

import (
	"bytes"
	"strings"
	"testing"
	"weir/models"
)

// largePool is a pool of 50 machines with 8 GPUs each, with 1,600 shares in use.
func largePool() PoolView {
	v := samplePool()
	v.Providers = nil
	for i := range int64(50) {
		p := Provider{ID: i + 1, Name: "node-" + number(i), State: "online", Lends: true}
		for n := range int64(8) {
			d := gpu(n)
			for s := range 4 {
				d.Shares = append(d.Shares, Share{Label: "vision · Li Wei", Cores: 20, MemoryMiB: 16 << 10, Colour: s + 1, Href: "/workspaces/5", Enforcement: "advisory"})
			}
			p.Devices = append(p.Devices, d)
		}
		v.Providers = append(v.Providers, p)
	}
	return v
}

func BenchmarkPoolPage(b *testing.B) {
	v, ctx := largePool(), With(b.Context(), Page{Lang: models.Chinese, User: &root, Now: now})
	var page bytes.Buffer
	for b.Loop() {
		page.Reset()
		if err := PoolPage(v).Render(ctx, &page); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(page.Len()), "bytes/page")
	if n := strings.Count(page.String(), `class="bar"`); n != 400 {
		b.Fatalf("%d bars are drawn, want 400", n)
	}
}

func TestUtilizationIsNotCalledMeasuredWhenSimulated(t *testing.T) {
	physical, simulated := Provider{Devices: []Device{{}}}, Provider{Devices: []Device{{Simulated: true}}}
	for want, v := range map[string]PoolView{
		"measured":         {Computing: 3, Providers: []Provider{physical}},
		"simulated":        {Computing: 3, Providers: []Provider{simulated}},
		"partly simulated": {Computing: 3, Providers: []Provider{physical, simulated}},
		"not measured":     {Computing: -1, Providers: []Provider{simulated}},
	} {
		if _, how := v.computing(t.Context()); how != want {
			t.Errorf("%s, want %s", how, want)
		}
	}
}
