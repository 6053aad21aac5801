package workspaces

import (
	"context"
	"strings"

	"weir/models"
	"weir/policies"
)

// Models finds models in shared directories, as the actor may read them.
type Models interface {
	// ModelNeeds returns the path of a model in workspaces, and what it needs.
	ModelNeeds(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (models.FilePath, models.ModelNeeds, error)
}

// Model is the model of a launch; without a path there is none.
type Model struct {
	Path  models.FilePath
	Needs models.ModelNeeds
}

// modelParameter is the launch parameter with the path of the model.
const modelParameter = "model_path"

// environments are those of the catalog with the minimum of the model.
func (m Model) environments(all []models.Environment) []models.Environment {
	list := make([]models.Environment, len(all))
	for i, e := range all {
		e.Minimum = e.Minimum.Max(m.Needs.Minimum)
		list[i] = e
	}
	return list
}

// match moves the environments that the model does not name to the mismatches.
func (m Model) match(matches []Match, mismatches []Mismatch) ([]Match, []Mismatch) {
	if m.Needs.Environment == "" {
		return matches, mismatches
	}
	named := func(e models.Environment) bool { return strings.EqualFold(e.Name, m.Needs.Environment) }
	return only(named, models.Say("the model needs the environment %s", m.Needs.Environment), matches, mismatches)
}

// mismatch is why no environment matches, if that is due to the model.
func (m Model) mismatch(mismatches []Mismatch) error {
	if m.Needs.Environment == "" {
		if m.Needs.VersionConstraints == "" {
			return nil
		}
		return models.Invalid(modelParameter, "needs %s, which none of the %d environments has", m.Needs.VersionConstraints, len(mismatches))
	}
	for _, c := range mismatches {
		if strings.EqualFold(c.Environment.Name, m.Needs.Environment) {
			return models.Invalid(modelParameter, "needs the environment %s: %s", c.Environment.Name, c.Reasons[0])
		}
	}
	return models.Invalid(modelParameter, "needs the environment %s, which is not in the catalog", m.Needs.Environment)
}
