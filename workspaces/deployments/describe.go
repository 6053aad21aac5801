package deployments

import (
	"cmp"
	"context"
	"errors"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/shard"
)

// ModelInput is what a model is planned for.
type ModelInput struct {
	Batch       int64    `query:"batch" minimum:"1" maximum:"65536" default:"1" doc:"sequences at once"`
	Context     int64    `query:"context" minimum:"1" maximum:"100000000" default:"4096" doc:"tokens of a sequence"`
	Cores       int64    `query:"cores" minimum:"1" maximum:"100" default:"100" doc:"GPU cores of each part, of devices of the pool"`
	ServiceType string   `query:"service_type" maxLength:"100" doc:"service type whose split is used; absent: by the architecture"`
	Devices     []string `query:"device,explode" maxItems:"64" doc:"24GiB or, with TFLOP/s and GB/s, 24GiB:100:25; absent: the pool"`
}

// Describe returns what a model in a folder consists of, the memory that it needs, and a
// plan for the stated devices or, without any, for what is available of the pool. Whoever can
// read the files of the folder can do that. Errors: invalid, for a field of the input;
// conflict, if the folder contains no valid model.
func (s *Service) Describe(ctx context.Context, actor policies.Actor, project int64, path models.FilePath,
	in ModelInput) (v models.ModelReport, err error) {
	in.Batch, in.Context, in.Cores = cmp.Or(in.Batch, 1), cmp.Or(in.Context, DefaultContext), cmp.Or(in.Cores, 100)
	load, err := shard.CheckLoad(in.Batch, in.Context)
	if err != nil {
		return v, err
	}
	if in.Cores < 1 || in.Cores > 100 {
		return v, models.Invalid("cores", "must be from 1 to %d", 100)
	}
	if v.Devices, err = shard.ParseDevices(in.Devices); err != nil {
		return v, err
	}
	at, folder, err := s.files.Folder(ctx, actor, project, path)
	if err != nil {
		return v, err
	}
	var leftOut []models.Text
	if v.Path = at; len(v.Devices) == 0 {
		if v.Devices, leftOut, err = s.poolDevices(ctx, actor, models.DeviceQuery{ProjectID: project, Cores: in.Cores}); err != nil {
			return v, err
		}
	}
	model, err := s.read(ctx, folder)
	if err != nil {
		return v, err
	}
	load.Context = contextOf(model, load.Context)
	longest := serving.MaxContext(model)
	capped := longest > 0 && load.Context > longest
	if capped {
		load.Context = longest
	}
	v.Facts, v.Memory = model.Facts, shard.Memory(model.Facts, load)
	if e, ok := errors.AsType[*models.Error](serving.Refuse(folder, model)); ok {
		v.NotServed = e.Message
	}
	presets, err := s.presetsFor(ctx, project, model.Facts)
	if err != nil {
		return v, err
	}
	for _, p := range presets {
		v.ServiceTypes = append(v.ServiceTypes, p.ServiceType)
	}
	v.Plan, err = shard.Plan(model.Facts, shard.Request{Load: load, ServiceType: in.ServiceType, Presets: presets,
		Devices: v.Devices, LeftOut: leftOut, Fewest: len(in.Devices) == 0})
	if v.NotServed.Empty() && v.Plan.Possible && checkPlan(v.Facts, v.Plan, 0) != nil {
		v.NotServed = models.Say("Models that are split by %s with %s cannot be served.", string(v.Plan.Split), string(v.Plan.Combine))
	}
	if !model.Note.Empty() {
		v.Plan.Say(model.Note)
	}
	if capped {
		v.Plan.Say(models.Say("It is planned for %d tokens, the longest context of the model.", longest))
	}
	return v, err
}
