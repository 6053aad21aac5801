package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
)

func TestRemains(t *testing.T) {
	free := Device{FreeCores: 20, FreeMemoryMiB: 30 << 10, Sharing: models.SharingMPS}
	inUse, closed, cut := free, free, free
	inUse.Enforcement = models.EnforcedMPS
	inUse.FreeCores = 0
	closed.State = models.Say("lost")
	cut.Instances = 3
	for want, d := range map[string]Device{"20 free · 30\u00a0GiB · MPS": free, "none free · MPS": inUse, "lost · MPS": closed, "MIG instances: 3": cut} {
		if got := d.freeSummary(t.Context()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	part := Device{Size: 42, MemoryMiB: 40 << 10}
	if part.width() != "42.00%" || part.memoryOf(20<<10) != "21.00%" || free.width() != "100%" {
		t.Errorf("an instance is drawn %s wide, half its memory %s", part.width(), part.memoryOf(20<<10))
	}
}

func TestEndsAreTheReadersOwn(t *testing.T) {
	mine, soon := Share{Mine: true}, ptr(now.Add(time.Hour))
	endingShare, foreign := mine, Share{EndsAt: soon}
	endingShare.EndsAt = soon
	got := endingShares([]Device{{Label: "a", Shares: []Share{mine, foreign}}, {Label: "b", Shares: []Share{foreign, endingShare}}, {Label: "c", Lost: true, Shares: []Share{mine}}, {Label: "d", Lost: true, Shares: []Share{foreign}}})
	if len(got) != 2 || got[0].Label != "b" || got[0].Shares[0].EndsAt != soon || got[1].Label != "c" {
		t.Errorf("warned of %+v", got)
	}
}

// The page of a simulated GPU says so at each chart, and each share how much it uses.
func TestSimulatedDevice(t *testing.T) {
	text := string(render(t, sample{name: "device", page: DevicePage(sampleDevice()), by: &root}, models.English))
	charts := strings.Split(text, `<figure class="chart"`)[1:]
	if len(charts) != 4 {
		t.Errorf("it has %d charts", len(charts))
	}
	for _, c := range charts {
		if caption, _, _ := strings.Cut(c, "</figcaption>"); !strings.Contains(caption, "simulated") {
			t.Errorf("a chart does not say that it is simulated: %s", caption)
		}
	}
	_, rows, _ := strings.Cut(text, `aria-label="GPU shares"`)
	for name, percent := range map[string]string{"vision (yours)": "35%", "another project": "", "free": "0%"} {
		_, row, found := strings.Cut(rows, name)
		row, _, _ = strings.Cut(row, "</tr>")
		_, cell, _ := strings.Cut(row, `data-label="Utilization">`)
		cell, _, _ = strings.Cut(cell, "</td>")
		if !found || strings.TrimSpace(cell) != percent {
			t.Errorf("%s: %q, want %q", name, cell, percent)
		}
	}
}

func TestBarInWords(t *testing.T) {
	d := myDevice()
	want := "gpu-node-01 GPU 0 (simulated). vision (yours): 50 GPU cores, 40\u00a0GiB; another project: 30 GPU cores, 24\u00a0GiB; 20 GPU cores and 16\u00a0GiB free"
	if got := d.describe(t.Context()); got != want {
		t.Errorf("the bar reads\n%q, want\n%q", got, want)
	}
	d = newShare(50)
	var at []string
	for _, s := range d.segments() {
		at = append(at, s.X+"+"+s.W)
	}
	if want := []string{"0%+30.00%", "30.00%+50.00%"}; !slices.Equal(at, want) {
		t.Errorf("segments lie at %v, want %v", at, want)
	}
}

func TestColour(t *testing.T) {
	for n := int64(-7); n < 20; n++ {
		if c := Colour(n); c < 1 || c > 6 {
			t.Errorf("Colour(%d) = %d", n, c)
		}
	}
}
