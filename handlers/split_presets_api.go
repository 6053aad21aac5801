package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/workspaces/deployments"
)

func (a rest) splitPresetsOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/split-presets", 200, "list-split-presets",
		models.Say("List the split presets of a project")}, a.listSplitPresets)
	register(a, s, route{http.MethodPost, "/projects/{id}/split-presets", 201, "create-split-preset",
		models.Say("Describe how models of an architecture are split")}, a.createSplitPreset, http.StatusConflict)
	register(a, s, route{http.MethodDelete, "/projects/{id}/split-presets/{preset}", 204, "delete-split-preset",
		models.Say("Delete a split preset")}, a.deleteSplitPreset)
}

func (a rest) listSplitPresets(ctx context.Context, in *ByID) (*Response[List[models.SplitPreset]], error) {
	all, err := a.Deployments.SplitPresets(ctx, actorOf(ctx), in.ID)
	return &Response[List[models.SplitPreset]]{List[models.SplitPreset]{Items: models.Map(all, unchanged)}}, err
}

func (a rest) createSplitPreset(ctx context.Context, in *CreateIn[deployments.SplitPresetInput]) (*Response[models.SplitPreset], error) {
	p, err := a.Deployments.CreateSplitPreset(ctx, actorOf(ctx), in.ID, in.Body)
	return &Response[models.SplitPreset]{p}, err
}

// BySplitPreset names a split preset of a project.
type BySplitPreset struct {
	ByID
	Preset int64 `path:"preset" minimum:"1" doc:"ID of the split preset"`
}

func (a rest) deleteSplitPreset(ctx context.Context, in *BySplitPreset) (*Nothing, error) {
	return nil, a.Deployments.DeleteSplitPreset(ctx, actorOf(ctx), in.ID, in.Preset)
}
