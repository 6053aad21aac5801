package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// state is the persistent state of an agent, in one file that is replaced atomically.
type state struct {
	Server    string     `json:"server"`    // the portal's address
	Provider  string     `json:"provider"`  // the machine's name in the pool
	Authority string     `json:"authority"` // PEM of the portal's authority
	Current   credential `json:"current"`
	Next      credential `json:"next"`  // renewed and unused
	Token     string     `json:"token"` // of the portal's last response
	Code      string     `json:"code"`  // hash of the redeemed code

	Machine string `json:"machine,omitempty"` // digest of the node, in a cluster
	Host    string `json:"host,omitempty"`    // digest of the machine when it joined as a node

	Joining     string `json:"joining"`      // PEM; key of an unfinished enrollment
	JoiningCode string `json:"joining_code"` // hash of its code
}

// credential is a key with its certificate, both PEM.
type credential struct {
	Key         string `json:"key"`
	Certificate string `json:"certificate"`
}

const stateFile = "agent.json"

// dir is a locked state directory.
type dir struct {
	path string
	lock *os.File
}

// openDir creates the directory if needed, and locks it until it is closed or the
// process ends.
func openDir(path string) (*dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another agent runs from %s already", path), f.Close())
	}
	return &dir{path, f}, nil
}

func (d *dir) close() error { return d.lock.Close() }

// load reads the state; zero if there is none.
func load(path string) (s state, err error) {
	raw, err := os.ReadFile(filepath.Join(path, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		err = fmt.Errorf("the agent's state cannot be read: %w; move it away and enrol again", err)
	}
	return s, err
}

// save replaces the state atomically and durably.
func (d *dir) save(s state) error {
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(d.path, stateFile+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(d.path, stateFile))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return d.sync()
}

// sync makes a rename durable.
func (d *dir) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Enrolled reports whether a state directory has a finished enrollment. An unfinished one
// goes on with its code only.
func Enrolled(path string) (bool, error) {
	s, err := load(path)
	return s.Current.Certificate != "", err
}
