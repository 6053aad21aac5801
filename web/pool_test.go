package web

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
)

func TestChartPath(t *testing.T) {
	for _, c := range []struct {
		values []int64
		top    int64
		want   string
	}{
		{nil, 10, ""},
		{[]int64{-1, -1}, 10, ""},
		{[]int64{0, 10, 5}, 10, "M0 100H200V0H400V50H600"},
		{[]int64{5, -1, 5}, 10, "M0 50H200M400 50H600"}, // a gap stays a gap
		{[]int64{20}, 10, "M0 0H600"},                   // what is too high stays inside
		{[]int64{3}, 0, "M0 0H600"},
	} {
		if got := (Chart{Top: c.top}).path(Line{Values: c.values}); got != c.want {
			t.Errorf("%v of %d: %q, want %q", c.values, c.top, got, c.want)
		}
	}
}

func TestSlots(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	bucket := func(minute int, samples, sum, most int64) models.Telemetry {
		return models.Telemetry{At: from.Add(time.Duration(minute) * time.Minute), Samples: samples, UtilisationSum: sum, UtilisationMax: most,
			MemorySum: 2 * sum, MemoryMax: most, TemperatureSum: sum, TemperatureMax: most, PowerSum: sum, PowerMax: most}
	}
	slots := Slots([]models.Telemetry{bucket(-1, 5, 500, 100), bucket(0, 1, 10, 10), bucket(9, 3, 90, 50), bucket(20, 2, 40, 30), bucket(60, 1, 99, 99)}, from, from.Add(time.Hour), 6)
	want := []Slot{{Samples: 4, Mean: Amounts{25, 50, 25, 25}, Most: Amounts{50, 50, 50, 50}}, {}, {Samples: 2, Mean: Amounts{20, 40, 20, 20}, Most: Amounts{30, 30, 30, 30}}, {}, {}, {}}
	for i := range want {
		want[i].At = from.Add(time.Duration(i) * 10 * time.Minute)
	}
	if !slices.Equal(slots, want) {
		t.Errorf("slots are\n%+v, want\n%+v", slots, want)
	}
	drawn := lines(slots, func(a Amounts) int64 { return a.Utilisation })
	if want := []int64{25, -1, 20, -1, -1, -1}; !slices.Equal(drawn[1].Values, want) || largest(drawn) != 50 {
		t.Errorf("the lines are %+v, want the mean %v", drawn, want)
	}
	if got := (DeviceView{Slots: slots}).measuredSlots(); len(got) != 2 || got[0].At.Before(got[1].At) {
		t.Errorf("listed are %+v", got)
	}
}

func TestRemains(t *testing.T) {
	free := Device{FreeCores: 20, FreeMemoryMiB: 30 << 10, Sharing: models.SharingMPS}
	held, closed, cut := free, free, free
	held.Enforcement = models.EnforcedMPS
	held.FreeCores = 0
	closed.State = models.Say("lost")
	cut.Instances = 3
	for want, d := range map[string]Device{"20 free · 30 GiB · MPS": free, "none free · MPS": held, "lost · MPS": closed, "cut into instances: 3": cut} {
		if got := d.remains(t.Context()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	part := Device{Size: 42, MemoryMiB: 40 << 10}
	if part.width() != "42.00%" || part.memoryOf(20<<10) != "21.00%" || free.width() != "100%" {
		t.Errorf("an instance is drawn %s wide, half its memory %s", part.width(), part.memoryOf(20<<10))
	}
}

// Nothing is claimed of a share that does not hold.
func TestEnforcementInWords(t *testing.T) {
	for e, want := range map[string][2]string{
		models.EnforcedMPS:       {"MPS", "MPS: "},
		models.EnforcementLapsed: {"advisory until its daemon is back", "Advisory until its daemon is back: "},
		models.EnforcedAdvisory:  {"advisory", "Advisory: "},
	} {
		if got, means := enforcement(t.Context(), e), enforcementMeans(t.Context(), e); got != want[0] || !strings.HasPrefix(means, want[1]) {
			t.Errorf("%s: %q, %q", e, got, means)
		}
	}
}

func TestLentTo(t *testing.T) {
	v := ProviderView{Projects: []Choice{{ID: 3, Label: "vision"}}}
	is := func(want string) {
		t.Helper()
		if got := v.lentTo(t.Context()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("all")
	v.Chosen = true
	is("chosen ones, and none of yours")
	v.Facts.Terms.Projects = []int64{3}
	is("chosen ones, of yours: vision")
	v.Provider.Manage = true
	is("vision")
}

func TestEndsAreTheReadersOwn(t *testing.T) {
	mine, soon := Share{Mine: true}, ptr(now.Add(time.Hour))
	ending, foreign := mine, Share{EndsAt: soon}
	ending.EndsAt = soon
	got := ends([]Device{{Label: "a", Shares: []Share{mine, foreign}}, {Label: "b", Shares: []Share{foreign, ending}}, {Label: "c", Lost: true, Shares: []Share{mine}}, {Label: "d", Lost: true, Shares: []Share{foreign}}})
	if len(got) != 2 || got[0].Label != "b" || got[0].Shares[0].EndsAt != soon || got[1].Label != "c" {
		t.Errorf("warned of %+v", got)
	}
}

func TestProviderNotice(t *testing.T) {
	soon := ptr(now.Add(time.Hour))
	for _, c := range []struct {
		p    Provider
		want string
	}{
		{Provider{State: "online", Lends: true}, ""},
		{Provider{State: "online", Lends: true, Until: soon}, "Lends until"},
		{Provider{State: "online", Until: soon}, "Lends again at"},
		{Provider{State: "draining", Lends: true, Until: soon}, "Lends nothing new; what is held stays held."},
		{Provider{State: "recalled", RecallAt: soon}, "The shares here end at"},
		{Provider{State: "lost", RecallAt: soon, SeenAt: now}, "Shares are kept for when it comes back. Last heard of"},
	} {
		if got, _ := c.p.notice(t.Context()); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 18204: "18,204", -1234567: "-1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
	if roundUp(-1, 50) != 50 || roundUp(50, 50) != 50 || roundUp(51, 50) != 100 {
		t.Error("roundUp does not end at the next step")
	}
}

// large is a pool of 50 machines with 8 GPUs each, held by 1,600 shares.
func large() PoolView {
	v := samplePool()
	v.Providers = nil
	for i := range int64(50) {
		p := Provider{ID: i + 1, Name: "node-" + id(i), State: "online", Lends: true}
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
	v, ctx := large(), With(b.Context(), Page{Lang: models.Chinese, User: &root, Now: now})
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
