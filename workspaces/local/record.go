package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// key identifies one start of one workspace.
type key struct{ workspace, generation int64 }

// record is written before an instance runs. It is also the State that callers
// persist, so it contains no secret.
type record struct {
	Workspace  int64          `json:"workspace"`
	Generation int64          `json:"generation"`
	PID        int            `json:"pid"`     // the outer bubblewrap
	Started    uint64         `json:"started"` // in ticks since boot; with PID and Boot it identifies a process
	Boot       string         `json:"boot"`
	Dir        string         `json:"dir,omitempty"`   // empty: of an earlier version
	RunDir     fileID         `json:"run_dir"`         // the directory that contains Dir; 0: of an earlier version
	Owner      string         `json:"owner,omitempty"` // its mark; empty: of an earlier version
	Cgroup     cgroup         `json:"cgroup"`
	MemoryMiB  int64          `json:"memory_mib"`
	UID        uint32         `json:"uid,omitempty"` // 0: of an earlier version, that of the runtime
	GID        uint32         `json:"gid,omitempty"`
	Network    bool           `json:"network,omitempty"` // it has a network namespace
	Limits     []models.Limit `json:"limits"`

	Outgoing *runtime.Outgoing `json:"outgoing,omitempty"`
}

// instance is one start of a workspace, or one of [Runs], and its directory:
//
//	state       the record
//	token       the notebook's secret
//	log         what the notebook printed
//	mounts      what is mounted in the sandbox; see mounted
//	status      bubblewrap's JSON status: the inner pid, later the exit code
//	network     a FIFO that pid 1 of the sandbox and the helper of its network have open; the latter has its lock
//	network.log what the helper printed
//	jupyter.sock  a hard link to the notebook's socket; see ready
//	shared/     in the sandbox, as /run/weir
//	api/        in the sandbox of a workspace, read-only: the socket of the REST API
//	kernels/    in the sandboxes of a workspace and its runs: the sockets of kernels
type instance struct {
	record
	dir       string
	owner     runtime.Owner // of the runtime
	unblock   *os.File      // lets a starting sandbox go on when it is connected; see ownNetwork
	connected chan error    // receives once whether a starting sandbox is connected
}

// fileID identifies a file or directory of this machine, whatever its path is.
type fileID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

func identify(path string) (fileID, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return fileID{Device: st.Dev, Inode: st.Ino}, err
}

// foreign reports whether the instance was started from another run directory, of which
// this one, or the database, is a copy, or for another generation of the database. What
// runs there is not of this server. A run directory that was moved, or is reached by
// another path, is the same.
func (in *instance) foreign() bool {
	return !in.owner.Owns(in.Owner) || in.elsewhere()
}

func (in *instance) elsewhere() bool {
	if in.Dir == "" || in.Dir == in.dir {
		return false
	}
	here, err := identify(filepath.Dir(in.dir))
	if in.RunDir != (fileID{}) {
		return err == nil && here != in.RunDir
	}
	there, moved := identify(filepath.Dir(in.Dir))
	return err == nil && moved == nil && here != there
}

// mark is the mark of its processes: the directory is where it was when they were started.
func (in *instance) mark() mark {
	if in.Dir == "" || in.elsewhere() {
		return mark{in.dir, in.Owner}
	}
	return mark{in.Dir, in.Owner}
}

// incarnation identifies the process of a start: after a failed attempt, there may be another.
type incarnation struct {
	key
	pid     int
	started uint64
}

func (in *instance) incarnation() incarnation { return incarnation{in.key(), in.PID, in.Started} }

func (in *instance) key() key            { return key{in.Workspace, in.Generation} }
func (in *instance) shared() string      { return filepath.Join(in.dir, "shared") }
func (in *instance) stateFile() string   { return filepath.Join(in.dir, "state") }
func (in *instance) tokenFile() string   { return filepath.Join(in.dir, "token") }
func (in *instance) mountsFile() string  { return filepath.Join(in.dir, "mounts") }
func (in *instance) logFile() string     { return filepath.Join(in.dir, "log") }
func (in *instance) networkFile() string { return filepath.Join(in.dir, "network") }
func (in *instance) statusFile() string  { return filepath.Join(in.dir, "status") }
func (in *instance) socket() string      { return filepath.Join(in.dir, socketName) }

func (in *instance) state() runtime.State {
	b, err := json.Marshal(in.record)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return b
}

// save writes the record atomically.
func (in *instance) save() error { return replaceFile(in.stateFile(), in.state()) }

// newSuffix ends the name of a file that is not complete yet.
const newSuffix = ".new"

// replaceFile writes a file atomically.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+newSuffix, content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+newSuffix, path)
}

// bwrapStatus is the contents of bubblewrap's status file.
type bwrapStatus struct {
	Child        int    `json:"child-pid"` // pid 1 of the sandbox, by its outer number
	PIDNamespace uint64 `json:"pid-namespace"`
	ExitCode     *int   `json:"exit-code"`

	unknown bool // it could not be read
}

// sandboxStatus reads the status file: JSON documents, of which the last may be
// incomplete.
func (in *instance) sandboxStatus() bwrapStatus {
	var status bwrapStatus
	b, err := os.ReadFile(in.statusFile())
	status.unknown = err != nil && !saysGone(err)
	for dec := json.NewDecoder(bytes.NewReader(b)); dec.Decode(&status) == nil; {
	}
	return status
}

// writeExitCode records an exit code that bubblewrap could not write.
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
	logLimit = 1 << 20  // size from which a log is truncated
	logKeep  = 64 << 10 // size after that
)

// tail returns the end of the log with the token masked.
func (in *instance) tail() string { return in.logEnd(runtime.MaxLogTail) }

func (in *instance) logEnd(limit int) string {
	token := in.token()
	return runtime.LogEnd(limit, string(readEnd(in.logFile(), limit+len(token))), token)
}

// blockSize is the unit of the blocks of a file.
const blockSize = 512

// trimLog limits the size of the log, and the space that is allocated for it. Truncation is safe
// because the notebook appends; lines that it prints at the same time may be lost.
func (in *instance) trimLog() error {
	var st unix.Stat_t
	if err := unix.Stat(in.logFile(), &st); err != nil || max(st.Size, st.Blocks*blockSize) <= logLimit {
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
