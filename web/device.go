package web

import (
	"context"
	"strings"
	"time"

	"weir/models"
)

// DeviceView is one GPU, or a MIG instance of one.
type DeviceView struct {
	Device     Device
	Instances  []Device // that it is cut into
	Facts      models.Device
	Provider   string
	ProviderID int64
	State      string // of the provider
	Parent     *Link  // of an instance its GPU
	Peers      []Link // that NVLink joins to it
	Measured   *models.DeviceState
	Span       string // of the charts: hour, day or months
	Slots      []Slot
	From, To   time.Time
	History    []ShareRow
	CanEdit    bool
	Form       Form // sharing, layout, mixed
}

// ShareRow is a share of now or of the past.
type ShareRow struct {
	Label       string // empty if anonymous
	Href        string
	Cores       int64
	MemoryMiB   int64
	Enforcement string
	From        time.Time
	Until       *time.Time
}

// withoutProvider is the device on its own page, where its machine is named above.
func (v DeviceView) withoutProvider() Device {
	d := v.Device
	d.Provider = ""
	return d
}

// withInstances are the device and its instances.
func (v DeviceView) withInstances() []Device {
	return append([]Device{v.withoutProvider()}, v.Instances...)
}

func (v DeviceView) topics() []string { return []string{"pool", "telemetry:" + number(v.ProviderID)} }

// errors formats the errors found by the memory's error correction.
func (v DeviceView) errors(ctx context.Context) string {
	switch v.Facts.ECC {
	case "":
		return ""
	case "on":
		return T(ctx, "on; %d uncorrected errors since the driver started", v.Facts.ECCErrors)
	}
	return T(ctx, "off")
}

func (v DeviceView) numa(ctx context.Context) string {
	if v.Facts.NUMA < 0 {
		return ""
	}
	return T(ctx, "node %d", v.Facts.NUMA)
}

// sharing is how the device is shared, and whether that is in effect yet.
func (v DeviceView) sharing(ctx context.Context) string {
	words := sharing(ctx, v.Facts.Sharing)
	if len(v.Facts.Layout) > 0 {
		words += " · " + strings.Join(v.Facts.Layout, ", ")
	}
	if v.Facts.Changing() {
		words += " · " + T(ctx, "changing")
	}
	if v.Facts.SharingError != "" {
		words += " · " + T(ctx, "not applied: %s", v.Facts.SharingError)
	}
	return words
}

// sharingChoice is a sharing mode with its explanation.
type sharingChoice struct{ Mode, Label, Help string }

func sharingChoices(ctx context.Context) []sharingChoice {
	return []sharingChoice{
		{models.SharingExclusive, T(ctx, "Exclusive"), T(ctx, "One user at a time, even if the request is for less than a whole GPU.")},
		{models.SharingTimeSlicing, T(ctx, "Time-slicing"), T(ctx, "Users share the GPU by time-slicing. Shares are not limited or isolated.")},
		{models.SharingMPS, "MPS",
			T(ctx, "NVIDIA's Multi-Process Service limits each user's threads and memory. A crash of one program can bring down the others.")},
		{models.SharingMIG, "MIG", T(ctx, "The hardware splits the GPU into isolated instances. Each instance has one user.")},
	}
}

// charts show the measurements of the selected span.
func (v DeviceView) charts(ctx context.Context) []Chart {
	return []Chart{
		v.chart(ctx, "utilisation", T(ctx, "Utilization"), func(n int64) string { return number(n) + "%" },
			func(a Amounts) int64 { return a.Utilisation }, 100),
		v.chart(ctx, "memory", T(ctx, "GPU memory in use"), models.FormatMiB, func(a Amounts) int64 { return a.MemoryMiB }, v.Facts.MemoryMiB),
		v.chart(ctx, "temperature", T(ctx, "Temperature"), func(n int64) string { return number(n) + " °C" },
			func(a Amounts) int64 { return a.Temperature }, 0),
		v.chart(ctx, "power", T(ctx, "Power"), func(n int64) string { return number(n) + " W" },
			func(a Amounts) int64 { return a.PowerMW / 1000 }, 0),
	}
}

// chart is one of the charts; top is the maximum of its scale, or 0 to use that of the
// measurements.
func (v DeviceView) chart(ctx context.Context, name, title string, say func(int64) string, of func(Amounts) int64, top int64) Chart {
	c := Chart{ID: "chart-" + name, Title: title, Top: top, Say: say, From: v.From, To: v.To, Lines: lines(v.Slots, of),
		Simulated: v.Device.Simulated}
	most := largest(c.Lines)
	if c.Top == 0 {
		c.Top = roundUp(most, 50)
	}
	c.Lines[0].Label, c.Lines[1].Label = T(ctx, "maximum"), T(ctx, "average")
	c.Summary = T(ctx, "%s: no data.", title)
	if most >= 0 {
		c.Summary = T(ctx, "%s: maximum %s.", title, say(most))
	}
	return c
}

// measuredSlots are those in which something was measured, newest first.
func (v DeviceView) measuredSlots() (list []Slot) {
	for i := len(v.Slots) - 1; i >= 0; i-- {
		if v.Slots[i].Samples > 0 {
			list = append(list, v.Slots[i])
		}
	}
	return list
}

// watts formats milliwatts.
func watts(mw int64) string { return number(mw/1000) + " W" }
