package deployments

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"go.yaml.in/yaml/v3"

	"weir/workspaces/shard"
)

// PresetsYAML are the splits that the program has, by service type.
//
//go:embed presets.yaml
var PresetsYAML []byte

// maxPresets is the most bytes of a file with presets.
const maxPresets = 1 << 20

// PresetFile is the presets of a file as it is now, so that they are added, replaced and removed
// while the server runs. Deployments keep the plans that were made with others. While a file is not
// valid, those that were read before stay.
type PresetFile struct {
	path   string // empty: those of the program
	logger *slog.Logger

	mu    sync.Mutex
	list  []shard.Preset
	state string // of the file, as it was tried
}

// OpenPresets reads the presets of a file; without a path, those of the program.
func OpenPresets(path string, logger *slog.Logger) (*PresetFile, error) {
	f := &PresetFile{path: path, logger: logger}
	if path == "" {
		list, err := parsePresets(PresetsYAML)
		f.list = list
		return f, err
	}
	return f, f.read()
}

// Current are the presets.
func (f *PresetFile) Current() []shard.Preset {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path != "" {
		if err := f.read(); err != nil {
			f.logger.Error("the presets of splits cannot be read; those of before are used", "err", err)
		}
	}
	return f.list
}

// read reads the file if it has changed since it was tried.
func (f *PresetFile) read() error {
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not keep it waiting
	if err != nil {
		return f.tried(err.Error(), err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f.tried(err.Error(), err)
	}
	state := fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
	if state == f.state {
		return nil
	}
	if !info.Mode().IsRegular() {
		return f.tried(state, fmt.Errorf("%s is not a regular file", f.path))
	}
	content, err := io.ReadAll(io.LimitReader(file, maxPresets+1))
	if err != nil {
		return f.tried(err.Error(), err) // it is tried again
	}
	if len(content) > maxPresets {
		return f.tried(state, fmt.Errorf("%s has more than %d bytes", f.path, maxPresets))
	}
	list, err := parsePresets(content)
	if err != nil {
		return f.tried(state, fmt.Errorf("%s: %w", f.path, err))
	}
	f.list = list
	return f.tried(state, nil)
}

// tried keeps the state of a file, so that a failure is returned once.
func (f *PresetFile) tried(state string, err error) error {
	if state == f.state {
		return nil
	}
	f.state = state
	return err
}

func parsePresets(text []byte) (list []shard.Preset, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("presets of splits: %w", err)
	}
	if len(list) == 0 || d.Decode(new(any)) != io.EOF {
		return nil, errors.New("presets of splits: they must be one list with at least one entry")
	}
	names := map[string]bool{}
	for i, p := range list {
		wrong := p.Check()
		if names[p.ServiceType] {
			wrong = "service_type occurs twice"
		}
		if names[p.ServiceType] = true; wrong != "" {
			return nil, fmt.Errorf("presets of splits: entry %d: %s", i+1, wrong)
		}
	}
	return list, nil
}
