package workspaces_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"weir/models"
	"weir/policies"
	"weir/workspaces"
)

// shelf has models by their paths.
type shelf map[models.FilePath]models.ModelNeeds

func (s shelf) ModelNeeds(_ context.Context, _ policies.Actor, _ int64, path models.FilePath) (models.FilePath, models.ModelNeeds, error) {
	n, ok := s[path]
	if !ok {
		return "", n, models.NotFound("file")
	}
	if n.Environment == "broken" {
		return "", n, models.Conflict("The file %s is not valid: %s", "weir.yaml", "no")
	}
	return path, n, nil
}

// A launch for a model takes the environment that the model needs, or tells why not.
func TestLaunchesForModels(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		torch := b.environment(t, workspaces.EnvironmentInput{Name: "A Torch", Language: "python", LanguageVersion: "3.11", Versions: map[string]string{"torch": "2.5"}, Command: []string{"/bin/sleep", "600"}})
		jax := b.environment(t, workspaces.EnvironmentInput{Name: "B JAX", Language: "python", LanguageVersion: "3.12", Versions: map[string]string{"jax": "0.5"}, Command: []string{"/bin/sleep", "600"}})
		b.Models = shelf{"/named": {Environment: "b jax"}, "/constrained": {VersionConstraints: "torch>=2"}, "/none": {}, "/unknown": {Environment: "X"}, "/both": {Environment: "B JAX", VersionConstraints: "torch"},
			"/future": {VersionConstraints: "torch>=9"}, "/large": {Minimum: models.Minimum{MemoryMiB: 3000}}, "/huge": {Minimum: models.Minimum{MemoryMiB: 1 << 30}}, "/malformed": {VersionConstraints: "!"}, "/broken": {Environment: "broken"}}
		for path, want := range map[models.FilePath]int64{"/named": jax.ID, "/constrained": torch.ID} {
			p, err := b.Preview(b.ctx, b.actor, workspaces.LaunchInput{ProjectID: b.project.ID, ModelPath: path})
			if err != nil || p.Rejection != nil || p.Environment.ID != want || p.Model.Path != path {
				t.Errorf("%s: %v, %v, environment %d", path, err, p.Rejection, p.Environment.ID)
			}
		}
		for path, says := range map[models.FilePath]string{"/missing": "was not found", "/unknown": "needs the environment X, which is not in the catalog", "/both": "needs the environment B JAX: does not have torch",
			"/future": "needs torch>=9, which none of the", "/malformed": "is not a version constraint", "/broken": "is not valid"} {
			_, err := b.Launch(b.ctx, b.actor, workspaces.LaunchInput{ProjectID: b.project.ID, ModelPath: path})
			var e *models.Error
			if !errors.As(err, &e) || e.Kind != models.KindInvalid || len(e.Fields) != 1 || e.Fields[0].Name != "model_path" || !strings.Contains(e.Fields[0].Reason.String(), says) {
				t.Errorf("%s: %v", path, err)
			}
		}
		if p, err := b.Preview(b.ctx, b.actor, workspaces.LaunchInput{ProjectID: b.project.ID, ModelPath: "/huge"}); err != nil || p.Rejection == nil || len(p.Mismatches) == 0 {
			t.Errorf("%+v, %v", p.Mismatches, err)
		}
		w, err := b.Launch(b.ctx, b.actor, workspaces.LaunchInput{ProjectID: b.project.ID, ModelPath: "/large"})
		if err != nil || w.Demand.MemoryMiB != 3000 {
			t.Fatalf("%+v, %v", w.Demand, err)
		}
		b.until(t, w.ID, models.StateRunning)
		if model := b.runtime.specs[0].Env["WEIR_MODEL"]; model != "/large" {
			t.Errorf("WEIR_MODEL is %q", model)
		}
	})
}
