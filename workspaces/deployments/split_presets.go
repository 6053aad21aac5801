package deployments

import (
	"context"
	"slices"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/shard"
)

const (
	maxCuts     = shard.MaxItems
	maxCutName  = 200      // bytes
	maxCutNames = 16 << 10 // bytes of all
)

// SplitPresetInput describes how models of an architecture are split.
type SplitPresetInput struct {
	ServiceType  string              `json:"service_type" minLength:"1" maxLength:"100" doc:"name by which plans and deployments use it"`
	Architecture string              `json:"architecture,omitempty" maxLength:"200" doc:"of the models for which it is offered, as in config.json; absent: of all"`
	Split        models.ModelSplit   `json:"split" enum:"layers,heads,experts" doc:"where models are cut"`
	Combine      models.ModelCombine `json:"combine" enum:"pass_on,concatenate,sum,vote" doc:"what is done with the results of the parts"`
	Cuts         []string            `json:"cuts,omitempty" maxItems:"1024" doc:"names of the layers before which models may be cut, for layers; absent: before all"`
}

// check returns the input as a preset of a project. The names of the program's presets are taken.
func (in SplitPresetInput) check(project int64, taken []string) (p models.SplitPreset, err error) {
	var wrong models.Problems
	p = models.SplitPreset{ProjectID: project, ServiceType: models.CheckName("service_type", in.ServiceType, &wrong),
		Architecture: models.CheckText("architecture", in.Architecture, 200, &wrong), Split: in.Split, Combine: in.Combine, Cuts: []string{}}
	if slices.Contains(taken, p.ServiceType) {
		wrong.Add("service_type", "is already a service type")
	}
	if !shard.IsSplit(in.Split) {
		wrong.Add("split", "must be layers, heads or experts")
	}
	if !shard.IsCombine(in.Combine) {
		wrong.Add("combine", "must be pass_on, concatenate, sum or vote")
	}
	if len(in.Cuts) > 0 && in.Split != models.SplitLayers {
		wrong.Add("cuts", "can be stated for a split between layers only")
	}
	if len(in.Cuts) > maxCuts {
		wrong.Add("cuts", "must be at most %d layers; has %d", int64(maxCuts), int64(len(in.Cuts)))
	}
	size := 0
	for _, cut := range in.Cuts[:min(len(in.Cuts), maxCuts)] {
		cut = strings.TrimSpace(cut)
		if cut == "" || len(cut) > maxCutName || models.VisibleName(cut) != cut {
			wrong.Add("cuts", "must have names of layers of at most %d bytes", int64(maxCutName))
			break
		}
		if !slices.Contains(p.Cuts, cut) {
			p.Cuts, size = append(p.Cuts, cut), size+len(cut)
		}
	}
	if size > maxCutNames {
		wrong.Add("cuts", "must have names of at most %d bytes together; has %d", int64(maxCutNames), int64(size))
	}
	return p, wrong.Err()
}

// MaySplit reports whether the actor may describe splits in a project.
func (s *Service) MaySplit(actor policies.Actor, project int64) bool {
	return s.access.May(actor, project, policies.WorkspaceLaunch)
}

// SplitPresets lists the split presets of a project, by service type.
func (s *Service) SplitPresets(ctx context.Context, actor policies.Actor, project int64) ([]models.SplitPreset, error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return nil, err // who reads all projects names one that is not there
	}
	return q.SplitPresets(project)
}

// CreateSplitPreset adds a split preset to a project. Errors: invalid, for a field of the input;
// conflict, if the project has as many as it can have.
func (s *Service) CreateSplitPreset(ctx context.Context, actor policies.Actor, project int64, in SplitPresetInput) (
	p models.SplitPreset, err error) {
	err = s.access.Write(ctx, s.store, actor, project, policies.WorkspaceLaunch, func(q *store.Queries) error {
		if _, err := q.LockProject(actor.Scope(), project); err != nil {
			return err
		}
		all, err := q.SplitPresets(project)
		if err != nil {
			return err
		}
		taken := s.ServiceTypes()
		for _, other := range all {
			taken = append(taken, other.ServiceType)
		}
		if p, err = in.check(project, taken); err != nil {
			return err
		}
		if len(all) >= models.MaxSplitPresets {
			return models.Conflict("A project can have at most %d split presets.", int64(models.MaxSplitPresets))
		}
		p.UserID, p.CreatedAt = actor.User.ID, q.Now()
		if err := q.CreateSplitPreset(&p); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "create", Object: "split preset", ID: p.ID, Project: project, After: p})
	})
	return p, err
}

// DeleteSplitPreset removes a split preset. Deployments keep the plans that were made with it.
func (s *Service) DeleteSplitPreset(ctx context.Context, actor policies.Actor, project, id int64) error {
	return s.access.Write(ctx, s.store, actor, project, policies.WorkspaceLaunch, func(q *store.Queries) error {
		before, err := q.SplitPreset(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		if err := q.DeleteSplitPreset(id); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "split preset", ID: id, Project: project, Before: before})
	})
}

// presetsFor are the presets for a model in a project: those of the program, and those of the project
// that are offered for its architecture.
func (s *Service) presetsFor(ctx context.Context, project int64, f models.ModelFacts) ([]shard.Preset, error) {
	list := slices.Clone(s.presets.Current())
	own, err := s.store.Read(ctx).SplitPresetsFor(project, f.Architecture)
	for _, p := range own {
		list = append(list, shard.Preset{ServiceType: p.ServiceType, Split: p.Split, Combine: p.Combine, OnRequest: true, Cuts: p.Cuts})
	}
	return list, err
}
