package deployments

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/shard"
)

// Served plans models that are served, and writes their parts.
type Served struct {
	service *Service
	*serving.Store
}

// NewServed returns Served that writes to a directory.
func NewServed(s *Service, dir string) *Served { return &Served{s, &serving.Store{Dir: dir}} }

// largeDevice has more memory than any model needs, and a link whose transfers take no time: somebody
// has said how many parts there are, and each gets a device with the memory that the plan says.
var largeDevice = models.ModelDevice{MemoryBytes: 1 << 50, TFLOPS: shard.DefaultTFLOPS, LinkGBps: 1e15}

// Plan plans the model in a folder on a number of parts; on 0, as few as the devices in question have
// memory for. Errors: conflict, if the folder contains no model
// that can be served; invalid, for the fields parts, batch, context and service_type.
func (s *Served) Plan(ctx context.Context, actor policies.Actor, path models.FilePath, parts int64, in models.ServedInput,
	on models.DeviceQuery) (v models.ServedModel, err error) {
	at, folder, err := s.service.files.Folder(ctx, actor, on.ProjectID, path)
	if err != nil {
		return v, err
	}
	state, err := serving.Files(folder)
	if err != nil {
		return v, err
	}
	m, err := s.service.read(ctx, folder)
	if err != nil {
		return v, err
	}
	if err := serving.Refuse(folder, m); err != nil {
		return v, err
	}
	load, err := loadOf(in, m)
	if err != nil {
		return v, err
	}
	presets, err := s.service.presetsFor(ctx, on.ProjectID, m.Facts)
	if err != nil {
		return v, err
	}
	devices, leftOut, err := s.service.poolDevices(ctx, actor, on)
	if err != nil {
		return v, err
	}
	r := shard.Request{Load: load, ServiceType: in.ServiceType, Presets: presets, Devices: devices, LeftOut: leftOut, Fewest: true}
	if parts > 0 {
		r.LeftOut, r.Devices, r.All, r.Fewest = nil, slices.Repeat([]models.ModelDevice{largeDevice}, int(parts)), true, false
	}
	v = models.ServedModel{Path: at, Hidden: m.Facts.Hidden, Task: serving.TaskOf(m), Vocabulary: serving.Results(m),
		Context: load.Context, Files: state}
	if v.Plan, err = shard.Plan(m.Facts, r); err != nil {
		return v, err
	}
	if err := checkPlan(m.Facts, v.Plan, parts); err != nil {
		return v, err
	}
	if parts == 1 {
		v.Plan.Reasons = nil // they are of largeDevice
	}
	if parts > 0 {
		v.Plan.Reasons = slices.Insert(v.Plan.Reasons, 0, models.Say("%d parts were requested.", parts))
	}
	simulated := slices.ContainsFunc(devices, func(d models.ModelDevice) bool { return d.Simulated })
	for i := range v.Plan.Parts {
		v.Plan.Parts[i].Process = processMemory(m.Facts, v.Plan.Parts[i], simulated)
	}
	if v.Task != models.TaskTextGeneration {
		return v, nil
	}
	f, err := folder.Open("tokenizer.json")
	if err == nil {
		return v, f.Close()
	}
	v.TextPrompts = errors.Is(err, fs.ErrNotExist) && v.Vocabulary == 256
	return v, nil
}

// processMemory is the memory in bytes of the process that computes a part: what its GPU has, as all passes
// through it; more where GPUs are simulated, because CPUs compute in float32.
func processMemory(f models.ModelFacts, p models.ModelPart, simulated bool) int64 {
	if !simulated {
		return p.Total
	}
	const float32Bytes = 4
	widening := max(1, float32Bytes*float64(f.Parameters)/float64(max(f.Bytes, 1)))
	results := max(1, float32Bytes/float64(max(f.ValueBytes, 1)))
	return int64(float64(p.Weights)*widening + float64(p.Total-p.Weights)*results)
}

// contextOf is the context that is planned for a requested one: an image has as many tokens as it has.
func contextOf(m shard.Model, requested int64) int64 {
	if serving.TaskOf(m) == models.TaskImageClassification {
		return m.Facts.MaxContext
	}
	return requested
}

// loadOf is the load that a deployment is planned for.
func loadOf(in models.ServedInput, m shard.Model) (shard.Load, error) {
	most := serving.MaxContext(m) // 0 if it is not known
	if in.Context = contextOf(m, in.Context); in.Context == 0 {
		in.Context = min(DefaultContext, cmp.Or(most, DefaultContext))
	}
	if most > 0 && in.Context > most {
		return shard.Load{}, models.Invalid("context", "must be at most %d, by max_position_embeddings in config.json", most)
	}
	return shard.CheckLoad(in.Batch, in.Context)
}

// checkPlan refuses plans that cannot be served, or not on the stated number of parts.
func checkPlan(f models.ModelFacts, plan models.ModelPlan, parts int64) error {
	switch {
	case !plan.Possible:
		return models.NoCapacity("parts", "%s", plan.Reasons[len(plan.Reasons)-1])
	case parts > 0 && int64(len(plan.Parts)) != parts:
		return models.Invalid("parts", "must be at most %d for this model", int64(len(plan.Parts)))
	case len(plan.Parts) > models.MaxParts:
		return models.NoCapacity("parts", "the model needs %d parts; a deployment has at most %d", len(plan.Parts), models.MaxParts)
	case plan.Split == models.SplitHeads && f.Experts > 0:
		return models.Invalid("service_type", "must split the model by layers or experts: experts are not divided by attention heads")
	case !isServed(plan.Split, plan.Combine):
		return models.Invalid("service_type", "must be split by layers with pass_on, or by heads or experts with sum, not by %s with %s",
			string(plan.Split), string(plan.Combine))
	}
	return nil
}

// ServedTypes are the names of the presets by which deployments can be split.
func (s *Service) ServedTypes() (names []string) {
	for _, p := range s.presets.Current() {
		if isServed(p.Split, p.Combine) {
			names = append(names, p.ServiceType)
		}
	}
	return names
}

// isServed reports whether models with a split are served, by what is done with the results of the
// parts.
func isServed(split models.ModelSplit, combine models.ModelCombine) bool {
	switch split {
	case models.SplitNone:
		return true
	case models.SplitLayers:
		return combine == models.CombinePassOn
	case models.SplitHeads, models.SplitExperts:
		return combine == models.CombineSum
	default:
		return false
	}
}

// folder is the directory of a deployment's model, as its user can read it.
func (s *Served) folder(ctx context.Context, d models.Deployment) (fs.ReadDirFS, error) {
	_, folder, err := s.service.files.Folder(ctx, policies.Actor{User: models.User{ID: d.UserID}}, d.ProjectID, d.Path)
	return folder, err
}

// Files is the state of the files of a deployment's model.
func (s *Served) Files(ctx context.Context, d models.Deployment) (string, error) {
	folder, err := s.folder(ctx, d)
	if err != nil {
		return "", err
	}
	return serving.Files(folder)
}

// Write writes the parts of a deployment as its user can read the model.
func (s *Served) Write(ctx context.Context, d models.Deployment) (list []models.WrittenPart, err error) {
	folder, err := s.folder(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := unchanged(folder, d); err != nil {
		return nil, err
	}
	if list, err = s.Store.Write(ctx, d, folder); err == nil {
		err = unchanged(folder, d) // what was read is of one state
	}
	return list, err
}

// unchanged is a conflict if the files are not those of which a deployment was planned.
func unchanged(folder fs.ReadDirFS, d models.Deployment) error {
	state, err := serving.Files(folder)
	if err == nil && d.Files != "" && state != d.Files {
		err = models.Conflict("The model has changed since it was planned.")
	}
	return err
}
