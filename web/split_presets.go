package web

import (
	"context"
	"strings"

	"weir/models"
)

// SplitPresetsView are the split presets of a project, and the form for another one. Its fields:
// service_type, architecture, split, combine, cuts.
type SplitPresetsView struct {
	ProjectID int64
	Project   string
	Rows      []models.SplitPreset
	CanSplit  bool // describe another one
	Form      Form
}

func splitPresetsPath(project int64) string { return projectPath(project) + "/split-presets" }

// splitPresetLabels name the fields in the summary of errors.
var splitPresetLabels = map[string]string{"service_type": "preset.service_type", "architecture": "preset.architecture"}

// splitOptions are how models can be cut.
func splitOptions(ctx context.Context) []Option {
	return []Option{{Value: string(models.SplitLayers), Label: T(ctx, "between layers")},
		{Value: string(models.SplitHeads), Label: T(ctx, "by attention heads")},
		{Value: string(models.SplitExperts), Label: T(ctx, "by experts")}}
}

// combineOptions are what can be done with the results of parts.
func combineOptions(ctx context.Context) []Option {
	return []Option{{Value: string(models.CombinePassOn), Label: T(ctx, "passed on")},
		{Value: string(models.CombineSum), Label: T(ctx, "summed up")},
		{Value: string(models.CombineConcatenate), Label: T(ctx, "concatenated")},
		{Value: string(models.CombineVote), Label: T(ctx, "voted on")}}
}

// labelOf is the label of the option with a value.
func labelOf(options []Option, value string) string {
	for _, o := range options {
		if o.Value == value {
			return o.Label
		}
	}
	return value
}

// cuts are the layers before which a preset cuts.
func cuts(p models.SplitPreset) string {
	if len(p.Cuts) == 0 {
		return "–"
	}
	return strings.Join(p.Cuts, ", ")
}

// ConfirmDeleteSplitPreset asks for confirmation before a split preset is deleted.
func ConfirmDeleteSplitPreset(p models.SplitPreset) ConfirmView {
	at := splitPresetsPath(p.ProjectID)
	return ConfirmView{Title: models.Say("Delete the split preset %s?", p.ServiceType), Button: models.Say("Delete split preset"),
		Consequences: []models.Text{models.Say("It is no longer offered. Deployments keep the plans that were made with it.")},
		Action:       at + "/" + number(p.ID) + "/delete", Back: at}
}
