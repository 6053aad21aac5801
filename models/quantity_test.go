package models_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

const refused = -1

var memoryTexts = map[string]int64{
	"16 GiB": 16384, "1.5G": 1536, "512MiB": 512, "512 mb": 512, "2t": 2 << 20, "7": 7 * 1024, " 7 ": 7 * 1024,
	"0": 0, "0 GiB": 0, "0.0001 MiB": 1, "0.3 GiB": 308, "1.": 1024, ".5 GiB": 512, "007 m": 7,
	"": refused, " ": refused, "GiB": refused, "-1 GiB": refused, "+1": refused, "1e3": refused, "1 000": refused,
	"1,5 GiB": refused, "0x10": refused, "NaN": refused, "Inf": refused, "1 PiB": refused, "1 GiB x": refused, "1..5": refused,
	".": refused, "９": refused, "1\x00": refused, "99999999999999999999 TiB": refused, "1000001 TiB": refused,
}

var cpuTexts = map[string]int64{
	"4": 4000, "1.5": 1500, "500m": 500, "500 M": 500, "0": 0, "0.0001": 1, "1.1": 1100, "0.3m": 1,
	"": refused, "m": refused, "-1": refused, "1 core": refused, "1e9": refused, "1000000000.001": refused, "1000000000": models.MaxAmount,
}

func TestParseQuantities(t *testing.T) {
	check := func(kind, text string, want, got int64, err error) {
		t.Helper()
		if want == refused && err == nil || want != refused && (err != nil || got != want) {
			t.Errorf("%s %q is %d, %v; want %d", kind, text, got, err, want)
		}
	}
	for text, want := range memoryTexts {
		got, err := models.ParseMiB(text, 1024)
		check("memory", text, want, got, err)
	}
	for text, want := range cpuTexts {
		got, err := models.ParseCPU(text)
		check("CPU", text, want, got, err)
	}
	for text, want := range map[string]int64{"0": 0, " 12 ": 12, "1000000000000": models.MaxAmount,
		"1000000000001": refused, "-1": refused, "1.0": refused, "": refused, "1e3": refused, "0x1": refused} {
		got, err := models.ParseCount(text)
		check("count", text, want, got, err)
	}
}

// A displayed quantity parses to the same amount.
func TestQuantitiesParseAsFormatted(t *testing.T) {
	for milli := int64(0); milli <= 100_000; milli++ {
		text := fmt.Sprintf("%d.%03d", milli/1000, milli%1000)
		if got, err := models.ParseCPU(text); err != nil || got != milli {
			t.Fatalf("%s CPU is %d thousandths, %v", text, got, err)
		}
	}
	for mib := int64(0); mib < 10<<10; mib++ {
		text := models.FormatMiB(mib)
		if got, err := models.ParseMiB(text, 1); err != nil || got != mib {
			t.Fatalf("%d MiB reads %q and is taken for %d, %v", mib, text, got, err)
		}
	}
}

func TestFormatMiB(t *testing.T) {
	for mib, want := range map[int64]string{0: "0 GiB", 1: "1 MiB", 1023: "1023 MiB", 1024: "1 GiB", 1536: "1536 MiB", 10752: "10.5 GiB",
		16384: "16 GiB", 1 << 20: "1 TiB", 15 << 19: "7680 GiB", 3 << 23: "24 TiB", -512: "-512 MiB", -2048: "-2 GiB"} {
		if got := models.FormatMiB(mib); got != want {
			t.Errorf("%d MiB is %q, want %q", mib, got, want)
		}
	}
	for name, want := range map[string]string{"gpu_cores": "1500", "cpu_milli": "1.5", "memory_mib": "1500 MiB"} {
		if got := models.Quantity(name, 1500); got != want {
			t.Errorf("1500 of %s is %q, want %q", name, got, want)
		}
	}
}

func FuzzParseMiB(f *testing.F) {
	for text := range memoryTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := models.ParseMiB(text, 1024)
		if n < 0 || n > models.MaxAmount || err != nil && n != 0 {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	})
}

func FuzzParseCPU(f *testing.F) {
	for text := range cpuTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := models.ParseCPU(text)
		if n < 0 || n > models.MaxAmount || err != nil && n != 0 {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	})
}

func drawResources(t *rapid.T, name string) models.Resources {
	n := rapid.Int64Range(-models.MaxAmount, models.MaxAmount)
	return models.Resources{GPUCores: n.Draw(t, name+".gpu_cores"), GPUMemoryMiB: n.Draw(t, name+".gpu_memory"),
		CPUMilli: n.Draw(t, name+".cpu"), MemoryMiB: n.Draw(t, name+".memory"), StorageMiB: n.Draw(t, name+".storage")}
}

func TestResourcesMaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawResources(t, "a"), drawResources(t, "b")
		n := rapid.Int64Range(0, 1000).Draw(t, "n")
		sum := models.Resources{}
		for range n {
			sum = sum.Add(a)
		}
		for what, ok := range map[string]bool{
			"a+b-b is a":                            a.Add(b).Sub(b) == a,
			"a+b is b+a":                            a.Add(b) == b.Add(a),
			"a·n is a+a+…":                          a.Times(n) == sum,
			"a floored has nothing negative":        len((models.Resources{}).Exceeding(a.Floor())) == 0,
			"a does not exceed a":                   len(a.Exceeding(a)) == 0,
			"what exceeds is more than the limit":   exceedsTruly(a, b),
			"whatever is not named is in the limit": len(a.Exceeding(b))+len(b.Exceeding(a)) <= 5,
		} {
			if !ok {
				t.Errorf("it does not hold that %s", what)
			}
		}
	})
}

func exceedsTruly(a, b models.Resources) bool {
	over := map[string]int64{}
	for _, e := range a.Exceeding(b) {
		over[e.Name] = e.Value - e.Limit
	}
	for _, d := range a.Sub(b).Amounts() {
		if max(d.Value, 0) != over[d.Name] {
			return false
		}
	}
	return true
}

func TestResourcesCheck(t *testing.T) {
	var p models.Problems
	models.Resources{GPUCores: -1, GPUMemoryMiB: models.MaxAmount, CPUMilli: models.MaxAmount + 1}.Check("quota", &p)
	if len(p) != 2 || p[0].Name != "quota.gpu_cores" || p[1].Name != "quota.cpu_milli" {
		t.Errorf("refused: %v", p)
	}
}
