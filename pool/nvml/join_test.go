package nvml

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"weir/pool/providers"
)

func TestJoin(t *testing.T) {
	reports := devices(t, Join(simulate(t, "a100", 4, "host"), simulate(t, "h100", 2, "host")))
	if len(reports) != 6 {
		t.Fatalf("%d GPUs", len(reports))
	}
	for i, d := range reports {
		if d.Index != i || strings.Contains(d.Model, "A100") != (i < 4) {
			t.Errorf("%d: %+v", i, d)
		}
		want := others(reports[:4], i)
		if i >= 4 {
			want = others(reports[4:], i-4)
		}
		if !slices.Equal(d.Peers, want) {
			t.Errorf("%d: the peers are %q, not %q", i, d.Peers, want)
		}
	}
	if none := devices(t, Join()); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

// Orders reach the machine whose GPU they are for, and instances bear the
// index of their GPU in the whole.
func TestJoinedMachine(t *testing.T) {
	whole := Join(simulate(t, "a100", 2, "host"), simulate(t, "h100", 2, "host"))
	gpus := devices(t, whole)
	err := whole.Apply(t.Context(), []providers.DeviceOrder{
		{UUID: gpus[0].UUID, Sharing: "mig", Layout: []string{"3g.20gb", "3g.20gb"}},
		{UUID: gpus[2].UUID, Sharing: "mps"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var indexes []int
	var sharing []string
	all := devices(t, whole)
	for _, d := range all {
		indexes, sharing = append(indexes, d.Index), append(sharing, d.Sharing)
	}
	if !slices.Equal(indexes, []int{0, 0, 0, 1, 2, 3}) || !slices.Equal(sharing, []string{"mig", "", "", "", "mps", ""}) {
		t.Errorf("%v %q", indexes, sharing)
	}
	samples, err := whole.Samples(t.Context())
	if err != nil || len(samples) != 6 || samples[4].UUID != gpus[2].UUID || whole.Faults() != nil {
		t.Errorf("%+v, %v", samples, err)
	}
	if err := whole.Apply(t.Context(), []providers.DeviceOrder{{UUID: "GPU-elsewhere", Sharing: "mps"}}); err == nil || !strings.Contains(err.Error(), "GPU-elsewhere") {
		t.Error(err)
	}
}

type failing struct {
	providers.Machine
	err error
}

func (f failing) Devices(context.Context) ([]providers.DeviceReport, error) { return nil, f.err }

func TestJoinFails(t *testing.T) {
	trouble := errors.New("trouble")
	broken := Join(simulate(t, "a100", 1, "host"), failing{err: trouble})
	if _, err := broken.Devices(t.Context()); !errors.Is(err, trouble) {
		t.Error(err)
	}
	if err := broken.Apply(t.Context(), nil); !errors.Is(err, trouble) {
		t.Error(err)
	}
	twice := Join(simulate(t, "a100", 1, "host"), simulate(t, "a100", 2, "host"))
	if reports, err := twice.Devices(t.Context()); err == nil {
		t.Errorf("the same GPU twice: %+v", reports)
	}
}
