package web

import (
	"context"
	"strings"

	"weir/models"
)

// Device is a GPU as people see it: a hundred cores wide, one segment a
// share.
type Device struct {
	ID            int64
	Label         string // such as "GPU 0"
	Provider      string // its machine; shown where devices of several stand together
	Model         string
	MemoryMiB     int64
	MemoryUsedMiB int64 // measured; 0 draws nothing
	Shares        []Share
	FreeCores     int64
	FreeMemoryMiB int64
	Enforcement   string // models.Enforced…, or empty when nobody holds it
	Simulated     bool
	Exclusive     bool
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
	New       bool // not held yet: what a launch would take
	Href      string
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

// Held is Σ of the cores in its shares that are held already.
func (d Device) Held() int64 {
	var n int64
	for _, s := range d.Shares {
		if !s.New {
			n += s.Cores
		}
	}
	return n
}

// describe is the bar in words.
func (d Device) describe(ctx context.Context) string {
	var parts []string
	for _, s := range d.Shares {
		parts = append(parts, T(ctx, "%s: %d cores, %s", s.name(ctx), s.Cores, models.FormatMiB(s.MemoryMiB)))
	}
	parts = append(parts, T(ctx, "%d cores and %s free", d.FreeCores, models.FormatMiB(d.FreeMemoryMiB)))
	label := d.Label
	if d.Provider != "" {
		label = d.Provider + " " + label
	}
	if d.Simulated {
		label += " (" + T(ctx, "simulated") + ")"
	}
	return label + ". " + strings.Join(parts, T(ctx, "; "))
}

// remains says in words what is free, and how the held shares are enforced.
func (d Device) remains(ctx context.Context) string {
	parts := []string{T(ctx, "none free")}
	if d.FreeCores > 0 {
		parts[0] = T(ctx, "%d free · %s", d.FreeCores, models.FormatMiB(d.FreeMemoryMiB))
	}
	if d.Enforcement != "" {
		parts = append(parts, enforcement(ctx, d.Enforcement))
	}
	if d.Exclusive && d.Enforcement != models.EnforcedExclusive {
		parts = append(parts, T(ctx, "one holder at a time"))
	}
	return strings.Join(parts, " · ")
}

// name is what a share is called in words.
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

// caption is what stands in the segment; a narrow one stays empty.
func (s Share) caption(ctx context.Context) string {
	switch {
	case s.Cores < 8 || s.Anonymous:
		return ""
	case s.New:
		return T(ctx, "yours · %d", s.Cores)
	case s.Label == "":
		return id(s.Cores)
	}
	return s.Label + " · " + id(s.Cores)
}

// fill is the class of the segment.
func (s Share) fill() string {
	switch {
	case s.New:
		return "seg new"
	case s.Anonymous:
		return "seg anon"
	}
	class := "seg p" + id(int64(max(1, min(6, s.Colour))))
	if s.Mine {
		class += " mine"
	}
	return class
}

// modelsOf describes the devices of a machine: "8 × H100".
func modelsOf(devices []Device) string {
	var order []string
	count := map[string]int64{}
	for _, d := range devices {
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
		order[i] = id(count[key]) + " × " + key
	}
	return strings.Join(order, ", ")
}
