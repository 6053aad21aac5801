package handlers

import (
	"context"

	"weir/models"
)

// ModelEnvironment is a model with what it needs.
type ModelEnvironment struct {
	Path models.FilePath `json:"path" doc:"percent-encoded path of the model"`
	models.ModelNeeds
}

func (a rest) getModelEnvironment(ctx context.Context, in *ByPath) (*Response[ModelEnvironment], error) {
	path, needs, err := a.Files.ModelNeeds(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path))
	return &Response[ModelEnvironment]{ModelEnvironment{path, needs}}, err
}

// ModelEnvironmentInput is what a model needs.
type ModelEnvironmentInput struct {
	ByPath
	Body models.ModelNeeds
}

// setModelEnvironment responds with the manifest.
func (a rest) setModelEnvironment(ctx context.Context, in *ModelEnvironmentInput) (*FoundFile, error) {
	return foundFile(a.Files.SetModelNeeds(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.Body))
}
