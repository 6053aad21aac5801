package models_test

import (
	"encoding/json"
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
	for mib, want := range map[int64]string{0: "0 GiB", 1: "1 MiB", 1023: "1023 MiB", 1024: "1 GiB", 1536: "1.5 GiB", 10752: "10.5 GiB",
		16384: "16 GiB", 1 << 20: "1 TiB", 15 << 19: "7680 GiB", 3 << 23: "24 TiB", -512: "-512 MiB", -1536: "-1.5 GiB", -2048: "-2 GiB"} {
		if got := models.FormatMiB(mib); got != want {
			t.Errorf("%d MiB is %q, want %q", mib, got, want)
		}
	}
	for name, want := range map[string]string{"gpu_cores": "1500", "cpu_milli": "1.5", "memory_mib": "1.464 GiB"} {
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
	const most = models.MaxAmount / 1000 // so that sums are not taken for unlimited
	n := rapid.Int64Range(-most, most)
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
	for name, c := range map[string]struct {
		in      string
		refused string
	}{
		"all open":                         {`{}`, ""},
		"the largest":                      {`{"gpu_cores": 1000000000000, "storage_mib": 0}`, ""},
		"unlimited":                        {`{"cpu_milli": "unlimited", "memory_mib": "unlimited", "storage_mib": "unlimited"}`, ""},
		"unlimited in other spelling":      {`{"cpu_milli": "\u0075nlimited"}`, ""},
		"unlimited GPU":                    {`{"gpu_cores": "unlimited", "gpu_memory_mib": "unlimited"}`, "quota.gpu_cores quota.gpu_memory_mib "},
		"out of range":                     {`{"gpu_cores": -1, "cpu_milli": 1000000000001}`, "quota.gpu_cores quota.cpu_milli "},
		"a number that would be unlimited": {`{"cpu_milli": 2000000000000, "memory_mib": 9223372036854775807}`, "quota.cpu_milli quota.memory_mib "},
	} {
		var in models.ResourcesInput
		var p models.Problems
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatal(err)
		}
		refused := ""
		in.Check("quota", &p)
		for _, f := range p {
			refused += f.Name + " "
		}
		if refused != c.refused {
			t.Errorf("%s: refused %q, want %q", name, refused, c.refused)
		}
	}
}

// Amounts survive JSON: those that are open stay so, and so do unlimited ones.
func TestResourcesJSON(t *testing.T) {
	const open = `{"gpu_cores":5,"cpu_milli":0,"storage_mib":"unlimited"}`
	var in models.ResourcesInput
	if err := json.Unmarshal([]byte(open), &in); err != nil {
		t.Fatal(err)
	}
	if back, err := json.Marshal(in); string(back) != open || err != nil {
		t.Errorf("%s, %v", back, err)
	}
	if in.GPUMemoryMiB != nil || *in.StorageMiB != models.Unlimited || !in.Open() {
		t.Errorf("read as %+v", in)
	}
	const whole = `{"gpu_cores":5,"gpu_memory_mib":0,"cpu_milli":0,"memory_mib":0,"storage_mib":"unlimited"}`
	if back, err := json.Marshal(in.Resources()); string(back) != whole || err != nil {
		t.Errorf("%s, %v", back, err)
	}
	for _, bad := range []string{`{"cpu_milli":"none"}`, `{"cpu_milli":1.5}`, `{"cpu_milli":true}`} {
		if err := json.Unmarshal([]byte(bad), &in); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// An unlimited amount stays so, also when it is summed by a database.
func TestUnlimited(t *testing.T) {
	all := models.Resources{CPUMilli: models.Unlimited}
	some := models.Resources{CPUMilli: 5}
	summed := models.Resources{CPUMilli: 3 * models.Unlimited}
	for name, c := range map[string]struct{ got, want models.Resources }{
		"plus":      {some.Add(all), all},
		"less":      {all.Sub(some), all},
		"of itself": {all.Sub(summed), all},
		"times":     {all.Times(3), all},
		"no times":  {all.Times(0), models.Resources{}},
		"the least": {all.Min(some), some},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
	if over := summed.Exceeding(all); len(over) != 0 {
		t.Errorf("exceeds an unlimited amount: %v", over)
	}
	if over := all.Exceeding(some); len(over) != 1 || over[0].Name != "cpu_milli" {
		t.Errorf("unlimited exceeds %v", over)
	}
	if text := models.ExactQuantity("cpu_milli", models.Unlimited); text != "unlimited" {
		t.Errorf("in a form: %s", text)
	}
}
