package deployments

import (
	"context"
	"fmt"
	"io/fs"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/shard"
)

// Files opens folders of the shared directories, as the actor may read them.
type Files interface {
	Folder(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (models.FilePath, fs.ReadDirFS, error)
}

// Pool knows the devices of the pool, if the actor may see it.
type Pool interface {
	// FreeDevices are those on which a project can have a part, and why others are left out.
	FreeDevices(ctx context.Context, actor policies.Actor, on models.DeviceQuery) ([]models.FreeDevice, []models.Text, error)
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

// ServiceTypes are the names of the program's presets.
func (s *Service) ServiceTypes() (names []string) {
	for _, p := range s.presets.Current() {
		names = append(names, p.ServiceType)
	}
	return names
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

// poolDevices are the devices of the pool on which a project can have a part, and why others are left
// out. All are assumed to have the same speed, of which the cores are a part.
func (s *Service) poolDevices(ctx context.Context, actor policies.Actor, on models.DeviceQuery) (list []models.ModelDevice,
	leftOut []models.Text, err error) {
	devices, leftOut, err := s.pool.FreeDevices(ctx, actor, on)
	for _, d := range devices {
		list = append(list, models.ModelDevice{Name: fmt.Sprintf("%s #%d", d.Provider, d.Number), Model: d.Model, Machine: d.Provider,
			Simulated: d.Simulated, Single: d.Single, MemoryBytes: max(0, d.MemoryMiB-models.PartOverheadMiB) << 20,
			TFLOPS: shard.DefaultTFLOPS * float64(on.Cores) / 100, LinkGBps: shard.DefaultLinkGBps})
	}
	return list, leftOut, err
}
