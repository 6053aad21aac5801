package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/workspaces/runtime"
)

// Files in the directory of a run, besides those of its output.
const (
	stateFile  = "state.json"  // which pod is the run's; written before it is made
	cursorFile = "cursor.json" // what of its log is kept; written when the pod is complete
	resultFile = "result.json" // how it has ended
)

// cursor is how much of a pod's log is kept, in whole lines. The cluster returns a log from
// a second on: Count lines of that second and later ones are to be skipped.
type cursor struct {
	Offset int64 `json:"offset"` // in the output
	Second int64 `json:"second"` // Unix time
	Count  int64 `json:"count"`
}

func (r *Runs) path(id ref) string { return filepath.Join(r.dir, id.Pod) }

func (r *Runs) cursor(id ref) (cursor, error) {
	return readJSON[cursor](filepath.Join(r.path(id), cursorFile))
}

// result is the recorded end of a run.
func (r *Runs) result(id ref) (runtime.RunStatus, error) {
	return readJSON[runtime.RunStatus](filepath.Join(r.path(id), resultFile))
}

// readJSON reads a file of a run. One that is cut off, as by a power failure, is as none.
func readJSON[T any](path string) (value T, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return value, err
	}
	if !json.Valid(b) {
		return value, fs.ErrNotExist
	}
	return value, json.Unmarshal(b, &value)
}

// write replaces a file of a run at once. Other servers may write the same.
func (r *Runs) write(id ref, name string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(r.path(id), name+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // unless it was renamed
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(r.path(id), name))
}

// logSegment is the size of the files of an output, of which the last two are kept.
const logSegment = 32 << 20

// logFiles is the directory with the files of an output, named by their number.
type logFiles string

func (l logFiles) segment(n int64) string { return filepath.Join(string(l), fmt.Sprintf("log.%d", n)) }

// kept are the numbers of the first and the last file; false if there is none.
func (l logFiles) kept() (first, last int64, any bool) {
	entries, err := os.ReadDir(string(l))
	if err != nil {
		return 0, 0, false
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "log.")
		n, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			continue
		}
		if !any {
			first, last, any = n, n, true
		}
		first, last = min(first, n), max(last, n)
	}
	return first, last, any
}

// size is the length of the output, with what is not kept any more.
func (l logFiles) size() int64 {
	_, last, any := l.kept()
	info, err := os.Stat(l.segment(last))
	if !any || err != nil {
		return 0
	}
	return last*logSegment + info.Size()
}

// writeAt writes a piece of the output at its place. It may be there already.
func (l logFiles) writeAt(b []byte, offset int64) error {
	for len(b) > 0 {
		n, within := offset/logSegment, offset%logSegment
		piece := b[:min(int64(len(b)), logSegment-within)]
		f, err := os.OpenFile(l.segment(n), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(piece, within)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := os.Remove(l.segment(n - 2)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		b, offset = b[len(piece):], offset+int64(len(piece))
	}
	return nil
}

// File returns nothing: pods have no directory that the server sees.
func (r *Runs) File(runtime.State, string, int64) ([]byte, error) { return nil, fs.ErrNotExist }

// Log returns a part of what a run has printed; see [runtime.Runs].
func (r *Runs) Log(state runtime.State, offset int64, limit int) ([]byte, int64, error) {
	id, err := parseState(state)
	if err != nil {
		return nil, 0, err
	}
	l := logFiles(r.path(id))
	if _, err := os.Stat(string(l)); err != nil {
		return nil, 0, err
	}
	first, _, _ := l.kept()
	offset = min(max(offset, first*logSegment), l.size())
	f, err := os.Open(l.segment(offset / logSegment))
	if errors.Is(err, fs.ErrNotExist) { // at the end of the last file
		return nil, offset, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	b := make([]byte, limit)
	n, err := f.ReadAt(b, offset%logSegment)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], offset, err
}
