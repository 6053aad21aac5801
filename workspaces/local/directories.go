package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/workspaces/runtime"
)

const directoryFormat = "ws-%d-%d"

func (r *Runtime) path(k key) string {
	return filepath.Join(r.config.Dir, fmt.Sprintf(directoryFormat, k.workspace, k.generation))
}

// parseDirectory parses the name of a directory of path.
func parseDirectory(name string) (key, bool) {
	var k key
	n, err := fmt.Sscanf(name, directoryFormat, &k.workspace, &k.generation)
	return k, err == nil && n == 2 && name == fmt.Sprintf(directoryFormat, k.workspace, k.generation)
}

// directories returns all starts that have a directory.
func (r *Runtime) directories() ([]key, error) {
	entries, err := os.ReadDir(r.config.Dir)
	var keys []key
	for _, e := range entries {
		if k, ok := parseDirectory(e.Name()); ok {
			keys = append(keys, k)
		}
	}
	return keys, err
}

// loadOrEmpty reads the record of a start; one without processes if a server crashed
// before it wrote the record.
func (r *Runtime) loadOrEmpty(k key) (in *instance, recorded bool, err error) {
	if in, err = r.load(k); err == nil {
		return in, true, nil
	}
	if _, unread := errors.AsType[*fs.PathError](err); unread && !saysGone(err) {
		return nil, false, err
	}
	return r.instance(k), false, nil
}

// instance returns a start of a workspace that has no processes yet.
func (r *Runtime) instance(k key) *instance {
	in := &instance{dir: r.path(k), owner: r.config.Owner}
	in.Workspace, in.Generation, in.Owner = k.workspace, k.generation, r.config.Owner.String()
	return in
}

// load reads the record of a start.
func (r *Runtime) load(k key) (*instance, error) {
	in := &instance{dir: r.path(k), owner: r.config.Owner}
	b, err := os.ReadFile(in.stateFile())
	if err != nil {
		return nil, err
	}
	return in, json.Unmarshal(b, &in.record)
}

// parseState parses a State that this or an earlier Runtime returned.
func (r *Runtime) parseState(state runtime.State) (*instance, error) {
	in := &instance{owner: r.config.Owner}
	if err := json.Unmarshal(state, &in.record); err != nil {
		return nil, fmt.Errorf("not a state of the local runtime: %w", err)
	}
	if in.Workspace == 0 {
		return nil, errors.New("not a state of the local runtime")
	}
	in.dir = r.path(in.key())
	return in, nil
}
