package web

import (
	"context"
	"strings"
	"time"

	"weir/models"
)

// Device is a GPU as people see it: a hundred cores wide, one segment a
// share.
type Device struct {
	ID            int64
	Label         string // such as "GPU 0"
	Provider      string // its machine; shown among devices of several
	Model         string
	MemoryMiB     int64
	MemoryUsedMiB int64 // measured; 0 draws nothing
	Shares        []Share
	FreeCores     int64
	FreeMemoryMiB int64
	Enforcement   string      // models.Enforced… of the reader's own share, or empty
	Sharing       string      // models.Sharing… in effect, or empty where it does not matter
	State         models.Text // why it gets no new shares; empty if it can
	Trouble       models.Text // its failure, if any
	Size          int64       // cores of a MIG instance; 0: a whole GPU
	Instances     int         // that it is cut into; each is a Device of its own
	Utilisation   *int64      // measured, percent
	Lost          bool        // its machine is silent: shares are as they were
	Simulated     bool
	Mixed         bool
}

// Share is one segment of a device's bar.
type Share struct {
	Label     string // such as "vision · Li"; empty when Anonymous
	Cores     int64
	MemoryMiB int64
	Colour    int // 1 to 6, of its project
	Mine      bool
	Anonymous bool // of a project the reader is not in: hatched, no name
	New       bool // the share of a previewed launch
	Href      string

	Enforcement string      // models.Enforced…
	Utilisation *int64      // percent of the GPU
	EndsAt      *time.Time  // the end that the machine's owner has set
	EndReason   models.Text // why
}

// Colour picks a project's colour; the same project has the same everywhere.
func Colour(projectID int64) int { return int(projectID%6+6)%6 + 1 }

// segment is a share's place on the bar.
type segment struct {
	Share
	X, W string
}

func (d Device) segments() []segment {
	var out []segment
	var x int64
	for _, s := range d.Shares {
		out = append(out, segment{Share: s, X: percent(x, 100), W: percent(s.Cores, 100)})
		x += s.Cores
	}
	return out
}

// width is how much of a GPU's bar the device is.
func (d Device) width() string {
	if d.Size == 0 {
		return "100%"
	}
	return percent(d.Size, 100)
}

// memoryOf is a part of the device's memory on a bar of its width.
func (d Device) memoryOf(part int64) string {
	size := d.Size
	if size == 0 {
		size = 100
	}
	return percent(min(part, d.MemoryMiB)*size, 100*d.MemoryMiB)
}

// memoryInUse is Σ of the memory of its shares, in MiB.
func (d Device) memoryInUse() (n int64) {
	for _, s := range d.Shares {
		n += s.MemoryMiB
	}
	return n
}

// describe is the text alternative of the bar.
func (d Device) describe(ctx context.Context) string {
	var parts []string
	for _, s := range d.Shares {
		parts = append(parts, T(ctx, "%s: %d GPU cores, %s", s.name(ctx), s.Cores, models.FormatMiB(s.MemoryMiB)))
	}
	switch {
	case !d.State.Empty():
		parts = append(parts, TT(ctx, d.State))
	case d.FreeCores >= 0:
		parts = append(parts, T(ctx, "%d GPU cores and %s free", d.FreeCores, models.FormatMiB(d.FreeMemoryMiB)))
	}
	label := d.Label
	if d.Provider != "" {
		label = d.Provider + " " + label
	}
	if d.Simulated {
		label += " (" + T(ctx, "simulated") + ")"
	}
	return label + ". " + strings.Join(parts, T(ctx, "; "))
}

// freeSummary formats the available part and the sharing mode.
func (d Device) freeSummary(ctx context.Context) string {
	if d.Instances > 0 {
		return T(ctx, "MIG instances: %d", d.Instances)
	}
	var parts []string
	switch {
	case !d.State.Empty():
		parts = append(parts, TT(ctx, d.State))
	case d.FreeCores > 0:
		parts = append(parts, T(ctx, "%d free · %s", d.FreeCores, models.FormatMiB(d.FreeMemoryMiB)))
	case d.FreeCores == 0:
		parts = append(parts, T(ctx, "none free"))
	}
	switch {
	case d.Enforcement != "":
		parts = append(parts, enforcement(ctx, d.Enforcement))
	case d.Sharing == models.SharingTimeSlicing && len(d.Shares) == 1 && d.Shares[0].Cores == 100: // it is shared with nobody
		parts = append(parts, sharing(ctx, models.SharingExclusive))
	case d.Sharing != "":
		parts = append(parts, sharing(ctx, d.Sharing))
	}
	return strings.Join(parts, " · ")
}

// ofShare is the device of a workspace's share. Other shares are unknown, so the
// available part is not shown.
func (d Device) ofShare() Device {
	d.FreeCores = -1
	return d
}

// freeLabel is the available part, for a table.
func (d Device) freeLabel(ctx context.Context) string {
	if d.State.Empty() {
		return T(ctx, "free")
	}
	return TT(ctx, d.State)
}

// endingShares lists the reader's shares with an end time or a lost provider.
func endingShares(devices []Device) (list []Device) {
	for _, d := range devices {
		for _, s := range d.Shares {
			if s.Mine && (d.Lost || s.EndsAt != nil) {
				d.Shares = []Share{s}
				list = append(list, d)
			}
		}
	}
	return list
}

// name is the text of a share.
func (s Share) name(ctx context.Context) string {
	switch {
	case s.New:
		return T(ctx, "your new share")
	case s.Anonymous:
		return T(ctx, "another project")
	case s.Mine && s.Label != "":
		return T(ctx, "%s (yours)", s.Label)
	case s.Mine:
		return T(ctx, "your share")
	}
	return s.Label
}

// caption is the text in the segment; empty if that is too narrow.
func (s Share) caption(ctx context.Context) string {
	if s.Cores < 8 || s.Anonymous {
		return ""
	}
	return s.legend(ctx)
}

// legend names the segment.
func (s Share) legend(ctx context.Context) string {
	switch {
	case s.New:
		return T(ctx, "yours · %d", s.Cores)
	case s.Anonymous:
		return T(ctx, "another project") + " · " + number(s.Cores)
	case s.Label == "":
		return number(s.Cores)
	}
	return s.Label + " · " + number(s.Cores)
}

// class is the class of the segment.
func (s Share) class() string {
	switch {
	case s.New:
		return "segment new"
	case s.Anonymous:
		return "segment anonymous"
	}
	return "segment p" + number(int64(max(1, min(6, s.Colour))))
}

// describeModels describes the devices of a machine: "8 × H100".
func describeModels(devices []Device) string {
	var order []string
	count := map[string]int64{}
	for _, d := range devices {
		if d.Size > 0 {
			continue // counted with its GPU
		}
		key := d.Model
		if d.MemoryMiB > 0 {
			key += " · " + models.FormatMiB(d.MemoryMiB)
		}
		if count[key] == 0 {
			order = append(order, key)
		}
		count[key]++
	}
	for i, key := range order {
		order[i] = number(count[key]) + " × " + key
	}
	return strings.Join(order, ", ")
}
