package web

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/models"
)

// EnvironmentsView is the catalog.
type EnvironmentsView struct {
	Rows []models.Environment
}

// EnvironmentFormView creates a catalog entry or, with an ID, edits it.
//
// Fields: name, language, language_version, versions (lines "torch 2.9.0"),
// minimum.*, launch.*, image, command (an argument a line), default_path, no_notebook.
type EnvironmentFormView struct {
	Form       Form
	ID         int64
	Name       string
	Discovered bool // found on this machine: its versions are refreshed from there
}

func environmentPath(e models.Environment) string { return "/environments/" + number(e.ID) }

// versionList formats versions, sorted by name.
func versionList(versions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, strings.TrimSpace(name+" "+versions[name]))
	}
	return strings.Join(parts, ", ")
}

// minimumWords formats the minimum of an environment.
func minimumWords(ctx context.Context, m models.Minimum) string {
	var parts []string
	if m.GPUs > 0 || m.Cores > 0 {
		parts = append(parts, T(ctx, "%s GPU cores", cores(max(1, m.GPUs), max(1, m.Cores))))
	}
	if m.GPUMemoryMiB > 0 {
		parts = append(parts, T(ctx, "%s of GPU memory", models.FormatMiB(m.GPUMemoryMiB)))
	}
	if m.CPUMilli > 0 {
		parts = append(parts, T(ctx, "%s CPU", models.Quantity("cpu_milli", m.CPUMilli)))
	}
	if m.MemoryMiB > 0 {
		parts = append(parts, models.FormatMiB(m.MemoryMiB))
	}
	if len(parts) == 0 {
		return T(ctx, "none")
	}
	return strings.Join(parts, " · ")
}

func (v EnvironmentFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add environment")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v EnvironmentFormView) action() string { return itemPath("/environments", v.ID) }

// ConfirmDeleteEnvironment asks for confirmation before a catalog entry is deleted;
// blocked says why it cannot be.
func ConfirmDeleteEnvironment(e models.Environment, blocked error) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Delete environment %s?", e.Name),
		Consequences: []models.Text{models.Say("New workspaces can no longer use it. Running workspaces are not affected.")},
		Blocked:      blocked,
		Button:       models.Say("Delete environment"),
		Action:       "/environments/" + number(e.ID) + "/delete",
		Back:         "/environments", Version: e.Version,
	}
}

var minimumFields = []string{"minimum.gpus", "minimum.cores", "minimum.gpu_memory_mib", "minimum.cpu_milli", "minimum.memory_mib"}
