package serving

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"weir/models"
	"weir/workspaces/shard"
	"weir/workspaces/shard/split"
)

//go:embed worker.py
var worker []byte

// Names inside the sandbox of a part.
const (
	Target     = "/deployment" // where the directory of the part is mounted, read-only
	SocketName = "part.sock"   // in the shared directory of the sandbox
	KeyName    = "WEIR_PART_KEY"
)

// Command is the program of a part.
var Command = []string{"python3", Target + "/worker.py"}

// Check returns why the worker cannot serve a model; empty if it can.
func Check(m shard.Model) models.Text {
	f := m.Facts
	if f.Architecture != "LlamaForCausalLM" {
		return models.Say("The reference worker serves models with the architecture LlamaForCausalLM; this one is %s.",
			models.VisibleName(f.Architecture))
	}
	for _, name := range []string{"rope_scaling", "quantization_config"} {
		if text := string(m.Config[name]); text != "" && text != "null" {
			return models.Say("The reference worker serves no models with %s in config.json.", name)
		}
	}
	for _, name := range []string{"attention_bias", "mlp_bias"} {
		if string(m.Config[name]) == "true" {
			return models.Say("The reference worker serves no models with %s in config.json.", name)
		}
	}
	if f.Hidden == 0 || f.Heads == 0 || f.Vocabulary == 0 {
		return models.Say("config.json does not state hidden_size, num_attention_heads or vocab_size.")
	}
	for _, t := range f.Types {
		if t.Type != "F32" && t.Type != "F16" && t.Type != "BF16" {
			return models.Say("The reference worker serves no tensors of the type %s.", t.Type)
		}
	}
	return models.Text{}
}

// Store keeps the parts of deployments on the disk: the content-addressed files of each
// project, and for each part a directory that its sandbox sees.
type Store struct {
	Dir string

	writing sync.RWMutex // held for reading while parts are written, which Remove must not take for unused
}

// PartFile is a part on the disk.
type PartFile struct {
	Name    string
	Size    int64
	Written bool // this time: its content was not there
}

// part is what the worker reads besides the tensors.
type part struct {
	Config      shard.Config `json:"config"`
	First       bool         `json:"first"`
	Last        bool         `json:"last"`
	Context     int64        `json:"context"`
	Connections int64        `json:"connections"`
}

// Directory is the directory of a part.
func (s *Store) Directory(deployment int64, number int) string {
	return filepath.Join(s.Dir, fmt.Sprintf("deployment-%d", deployment), fmt.Sprint(number))
}

// Write writes the parts of a plan for the model in a folder. Parts whose content is there are
// not written again. The plan was made of the same files: the error is a conflict if not.
func (s *Store) Write(ctx context.Context, project, deployment int64, folder fs.FS, plan models.ModelPlan, load shard.Load) (
	[]PartFile, error) {
	s.writing.RLock()
	defer s.writing.RUnlock()
	m, err := shard.Read(folder)
	if err != nil {
		return nil, err
	}
	if why := Check(m); !why.Empty() {
		return nil, &models.Error{Kind: models.KindConflict, Message: why}
	}
	parts := filepath.Join(s.Dir, fmt.Sprintf("project-%d", project))
	if err := errors.Join(makeDir(s.Dir), makeDir(parts)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(parts)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	manifest, err := split.Split(ctx, folder, root, m, plan)
	if err != nil {
		return nil, err
	}
	var list []PartFile
	for i, p := range manifest.Parts {
		about := part{m.Config, i == 0, i == len(manifest.Parts)-1, load.Context, load.Batch + 2}
		if err := s.lay(filepath.Join(parts, p.File), s.Directory(deployment, i), about); err != nil {
			return nil, err
		}
		list = append(list, PartFile{p.File, p.Size, p.Written})
	}
	return list, nil
}

// makeDir makes a directory that the users of sandboxes can pass through.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	return os.Chmod(dir, 0o711)
}

// lay makes the directory of a part: the file by another link, and what describes it.
func (s *Store) lay(file, dir string, about part) error {
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if err := errors.Join(makeDir(filepath.Dir(dir)), os.RemoveAll(dir), makeDir(dir), os.Chmod(file, 0o644)); err != nil {
		return err
	}
	return errors.Join(os.Link(file, filepath.Join(dir, "part.safetensors")),
		os.WriteFile(filepath.Join(dir, "part.json"), text, 0o644),
		os.WriteFile(filepath.Join(dir, "worker.py"), worker, 0o644))
}

// Remove deletes what a deployment has on the disk, and the parts of its project that no
// other deployment has, unless parts are being written: a later Remove does that.
func (s *Store) Remove(project, deployment int64) error {
	err := os.RemoveAll(filepath.Dir(s.Directory(deployment, 0)))
	if !s.writing.TryLock() {
		return err
	}
	defer s.writing.Unlock()
	parts := filepath.Join(s.Dir, fmt.Sprintf("project-%d", project))
	list, failed := os.ReadDir(parts)
	if errors.Is(failed, fs.ErrNotExist) {
		return err
	}
	for _, f := range list {
		if info, e := f.Info(); e == nil && strings.HasSuffix(f.Name(), ".safetensors") && links(info) == 1 {
			err = errors.Join(err, os.Remove(filepath.Join(parts, f.Name())))
		}
	}
	return errors.Join(err, failed)
}
