package deployments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/shard"
)

// Files opens folders of the shared directories, as the actor may read them.
type Files interface {
	Folder(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (models.FilePath, fs.ReadDirFS, error)
}

// Pool knows the devices of the pool, if the actor may see it.
type Pool interface {
	// FreeDevices are those of which a project can have so many cores, as if a holder had nothing, and why
	// others are left out.
	FreeDevices(ctx context.Context, actor policies.Actor, project, cores, holder int64) ([]models.FreeDevice, []models.Text, error)
}

// readers is how many models are read at once: a header can take much memory.
const readers = 2

// Service describes models.
type Service struct {
	files   Files
	pool    Pool
	presets *PresetFile
	store   *store.Store
	access  *policies.Access
	reading chan struct{}
}

// New returns the service.
func New(files Files, pool Pool, presets *PresetFile, s *store.Store, access *policies.Access) *Service {
	return &Service{files, pool, presets, s, access, make(chan struct{}, readers)}
}

// DefaultContext is the number of tokens for which a plan is made unless one is stated.
const DefaultContext = 4096

// ModelInput is what a model is planned for.
type ModelInput struct {
	Batch       int64    `query:"batch" minimum:"1" maximum:"65536" default:"1" doc:"sequences at once"`
	Context     int64    `query:"context" minimum:"1" maximum:"100000000" default:"4096" doc:"tokens of a sequence"`
	Cores       int64    `query:"cores" minimum:"1" maximum:"100" default:"100" doc:"GPU cores of each part, of devices of the pool"`
	ServiceType string   `query:"service_type" maxLength:"100" doc:"service type whose split is used; absent: by the architecture"`
	Devices     []string `query:"device,explode" maxItems:"64" doc:"24GiB or, with TFLOP/s and GB/s, 24GiB:100:25; absent: the pool"`
}

// ServiceTypes are the names of the program's presets.
func (s *Service) ServiceTypes() (names []string) {
	for _, p := range s.presets.Current() {
		names = append(names, p.ServiceType)
	}
	return names
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
		if v.Devices, leftOut, err = s.poolDevices(ctx, actor, project, in.Cores, 0); err != nil {
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

// read reads a model when few others are read.
func (s *Service) read(ctx context.Context, folder fs.FS) (m shard.Model, err error) {
	err = s.inTurn(ctx, func() (err error) {
		m, err = shard.Read(folder)
		return err
	})
	return m, err
}

// inTurn does something with a model when few others are read.
func (s *Service) inTurn(ctx context.Context, do func() error) error {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poolDevices are the devices of the pool of which a project can have so many GPU cores, as if a holder had
// nothing, and why others are left out. All are assumed to have the same speed, of which the cores are a part.
func (s *Service) poolDevices(ctx context.Context, actor policies.Actor, project, cores, holder int64) (list []models.ModelDevice,
	leftOut []models.Text, err error) {
	devices, leftOut, err := s.pool.FreeDevices(ctx, actor, project, cores, holder)
	for _, d := range devices {
		list = append(list, models.ModelDevice{Name: fmt.Sprintf("%s #%d", d.Provider, d.Number), Model: d.Model, Machine: d.Provider,
			Simulated: d.Simulated, Single: d.Single, MemoryBytes: max(0, d.MemoryMiB-models.PartOverheadMiB) << 20,
			TFLOPS: shard.DefaultTFLOPS * float64(cores) / 100, LinkGBps: shard.DefaultLinkGBps})
	}
	return list, leftOut, err
}
