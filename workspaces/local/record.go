package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weir/models"
	"weir/workspaces"
)

// key names one start of one workspace.
type key struct{ workspace, generation int64 }

// record is what is written down of an instance before it runs. It is also
// the State that callers persist, so it holds no secret.
type record struct {
	Workspace  int64          `json:"workspace"`
	Generation int64          `json:"generation"`
	PID        int            `json:"pid"`     // the outer bubblewrap
	Started    uint64         `json:"started"` // in ticks since boot: with PID and Boot it names one process for ever
	Boot       string         `json:"boot"`
	Cgroup     cgroup         `json:"cgroup"`
	MemoryMiB  int64          `json:"memory_mib"`
	Limits     []models.Limit `json:"limits"`
}

// instance is one start of a workspace and its directory:
//
//	state       the record
//	token       the notebook's secret
//	log         what the notebook printed
//	status      what bubblewrap says: the inner pid, later the exit code
//	jupyter.sock  a hard link to the notebook's socket, made when it answered
//	shared/     the only part that the sandbox sees, as /run/weir
type instance struct {
	record
	dir string
}

func (in *instance) key() key           { return key{in.Workspace, in.Generation} }
func (in *instance) shared() string     { return filepath.Join(in.dir, "shared") }
func (in *instance) stateFile() string  { return filepath.Join(in.dir, "state") }
func (in *instance) tokenFile() string  { return filepath.Join(in.dir, "token") }
func (in *instance) logFile() string    { return filepath.Join(in.dir, "log") }
func (in *instance) statusFile() string { return filepath.Join(in.dir, "status") }
func (in *instance) socket() string     { return filepath.Join(in.dir, socketName) }

func (in *instance) state() workspaces.State {
	b, err := json.Marshal(in.record)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return b
}

// save writes the record so that a reader sees all of it or nothing.
func (in *instance) save() error {
	tmp := in.stateFile() + ".new"
	if err := os.WriteFile(tmp, in.state(), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, in.stateFile())
}

const directoryFormat = "ws-%d-%d"

func (r *Runtime) path(k key) string {
	return filepath.Join(r.dir, fmt.Sprintf(directoryFormat, k.workspace, k.generation))
}

// parseDirectory reads the name that path gave.
func parseDirectory(name string) (key, bool) {
	var k key
	n, err := fmt.Sscanf(name, directoryFormat, &k.workspace, &k.generation)
	return k, err == nil && n == 2 && name == fmt.Sprintf(directoryFormat, k.workspace, k.generation)
}

// directories lists every start that has left a directory.
func (r *Runtime) directories() []key {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.log.Error("cannot read the run directory", "error", err)
	}
	var keys []key
	for _, e := range entries {
		if k, ok := parseDirectory(e.Name()); ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// load reads the record of one start.
func (r *Runtime) load(k key) (*instance, error) {
	in := &instance{dir: r.path(k)}
	b, err := os.ReadFile(in.stateFile())
	if err != nil {
		return nil, err
	}
	return in, json.Unmarshal(b, &in.record)
}

// parseState reads a State that this or an earlier Runtime returned.
func (r *Runtime) parseState(state workspaces.State) (*instance, error) {
	in := &instance{}
	if err := json.Unmarshal(state, &in.record); err != nil {
		return nil, fmt.Errorf("not a state of the local runtime: %w", err)
	}
	if in.Workspace == 0 {
		return nil, errors.New("not a state of the local runtime")
	}
	in.dir = r.path(in.key())
	return in, nil
}

// bwrapStatus is what bubblewrap wrote to its status file.
type bwrapStatus struct {
	Child        int    `json:"child-pid"` // pid 1 of the sandbox, by its outer number
	PIDNamespace uint64 `json:"pid-namespace"`
	ExitCode     *int   `json:"exit-code"`
}

// sandboxStatus reads the status file: one JSON document after another, the last of
// which may be half written.
func (in *instance) sandboxStatus() bwrapStatus {
	var rep bwrapStatus
	b, _ := os.ReadFile(in.statusFile())
	for dec := json.NewDecoder(bytes.NewReader(b)); dec.Decode(&rep) == nil; {
	}
	return rep
}

// writeExitCode writes down an exit code that bubblewrap could not.
func (in *instance) writeExitCode(code int) error {
	f, err := os.OpenFile(in.statusFile(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "{ \"exit-code\": %d }\n", code)
	return err
}

func (in *instance) token() string {
	b, _ := os.ReadFile(in.tokenFile())
	return string(b)
}

const (
	logLimit = 1 << 20  // a log longer than this is cut
	logKeep  = 64 << 10 // to this
	logTail  = 4 << 10
)

// tail returns the end of the log without the token, whole lines if it can.
func (in *instance) tail() string {
	token := in.token()
	b := readEnd(in.logFile(), logTail+len(token))
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if token != "" {
		s = strings.ReplaceAll(s, token, "[token]")
	}
	if len(s) <= logTail {
		return s
	}
	s = s[len(s)-logTail:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// trimLog keeps the log bounded. The notebook appends, so cutting the file
// under it is safe; lines printed at this very moment may be lost.
func (in *instance) trimLog() error {
	info, err := os.Stat(in.logFile())
	if err != nil || info.Size() <= logLimit {
		return err
	}
	end := readEnd(in.logFile(), logKeep)
	f, err := os.OpenFile(in.logFile(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Write(end)
	return err
}

// readEnd reads at most n bytes from the end of a file.
func readEnd(path string, n int) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(0, info.Size()-int64(n))
	b := make([]byte, min(int64(n), info.Size()))
	read, _ := f.ReadAt(b, from)
	return b[:read]
}
