package deployments

import (
	"context"
	"errors"
	"io/fs"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/shard"
)

// Served plans models that are served, and writes their parts.
type Served struct {
	service *Service
	store   *serving.Store
}

// NewServed returns Served that writes to a directory.
func NewServed(s *Service, dir string) *Served { return &Served{s, &serving.Store{Dir: dir}} }

// freeLink is a link whose transfers take no time: somebody has said how many parts there are.
const freeLink = 1e15

// devicesOf are n equal devices with more memory than any model needs: a part gets a device
// with the memory that the plan says.
func devicesOf(n int64) (list []models.ModelDevice) {
	for range n {
		list = append(list, models.ModelDevice{MemoryBytes: 1 << 50, TFLOPS: shard.DefaultTFLOPS, LinkGBps: freeLink})
	}
	return list
}

// Plan plans the model in a folder on a number of parts; on 0, as few as the pool has memory
// for. Errors: conflict, if the folder contains no model that can be served; invalid, for the
// fields parts, batch, context and service_type.
func (s *Served) Plan(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, parts int64,
	in models.ServedInput) (v models.ServedModel, err error) {
	load, err := shard.CheckLoad(in.Batch, in.Context)
	if err != nil {
		return v, err
	}
	at, folder, err := s.service.files.Folder(ctx, actor, project, path)
	if err != nil {
		return v, err
	}
	m, err := s.service.read(ctx, folder)
	if err != nil {
		return v, err
	}
	if why := serving.Check(m); !why.Empty() {
		return v, &models.Error{Kind: models.KindConflict, Message: why}
	}
	r := shard.Request{Load: load, ServiceType: in.ServiceType, Presets: s.service.presets, Devices: devicesOf(parts), All: true}
	if parts == 0 {
		if r.Devices, err = s.service.poolDevices(ctx, actor); err != nil {
			return v, err
		}
		r.All, r.Fewest = false, true
	}
	v = models.ServedModel{Path: at, Hidden: m.Facts.Hidden, Vocabulary: m.Facts.Vocabulary, MaxContext: m.Facts.MaxContext}
	v.Plan, err = shard.Plan(m.Facts, r)
	switch {
	case err != nil:
		return v, err
	case !v.Plan.Possible:
		return v, models.NoCapacity("parts", "%s", v.Plan.Reasons[len(v.Plan.Reasons)-1])
	case parts > 0 && int64(len(v.Plan.Parts)) != parts:
		return v, models.Invalid("parts", "must be at most %d for this model", int64(len(v.Plan.Parts)))
	case v.Plan.Split != models.SplitNone && v.Plan.Split != models.SplitLayers:
		return v, models.Invalid("service_type", "is split by %s; only models that are cut between layers are served", string(v.Plan.Split))
	}
	f, err := folder.Open("tokenizer.json")
	if err == nil {
		return v, f.Close()
	}
	v.TextPrompts = errors.Is(err, fs.ErrNotExist) && v.Vocabulary >= 256
	return v, nil
}

// Write writes the parts of a deployment as its user can read the model.
func (s *Served) Write(ctx context.Context, d models.Deployment) (list []models.WrittenPart, err error) {
	_, folder, err := s.service.files.Folder(ctx, policies.Actor{User: models.User{ID: d.UserID}}, d.ProjectID, d.Path)
	if err != nil {
		return nil, err
	}
	files, err := s.store.Write(ctx, d.ProjectID, d.ID, folder, d.Plan, shard.Load{Batch: d.Batch, Context: d.Context})
	for _, f := range files {
		list = append(list, models.WrittenPart{File: f.Name, Size: f.Size})
	}
	return list, err
}

// Directory is what the sandbox of a part sees.
func (s *Served) Directory(d models.Deployment, part int64) string {
	return s.store.Directory(d.ID, int(part))
}

// Remove deletes what a deployment has on the disk.
func (s *Served) Remove(d models.Deployment) error { return s.store.Remove(d.ProjectID, d.ID) }
