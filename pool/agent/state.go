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

// state is what an agent must not forget. It is one file, so that it is never
// half of one enrolment and half of another.
type state struct {
	Server    string     `json:"server"`    // the portal's address, as it was given
	Provider  string     `json:"provider"`  // what the portal calls this machine
	Authority string     `json:"authority"` // PEM; whose certificate the portal must show
	Current   credential `json:"current"`
	Next      credential `json:"next"`  // a renewed one that was not used yet
	Token     string     `json:"token"` // of the portal's last answer
	Code      string     `json:"code"`  // hash of the code that was redeemed

	Machine string `json:"machine,omitempty"` // the digest by which the portal knows the machine, where the cluster vouched for it
	Host    string `json:"host,omitempty"`    // and that of the machine's own identity then

	Joining     string `json:"joining"`      // PEM; the key of an enrolment that has begun
	JoiningCode string `json:"joining_code"` // hash of its code
}

// credential is a key with its certificate, both PEM.
type credential struct {
	Key         string `json:"key"`
	Certificate string `json:"certificate"`
}

const stateFile = "agent.json"

// dir is a state directory that this process alone uses.
type dir struct {
	path string
	lock *os.File
}

// openDir makes the directory where it does not exist, and claims it until it
// is closed or the process ends.
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

// load reads the state; there may be none yet.
func (d *dir) load() (state, error) { return load(d.path) }

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

// save replaces the state, whole or not at all, and returns when it is on the
// disk.
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

// sync makes a rename outlive a power cut.
func (d *dir) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Enrolled tells whether a state directory holds an enrolment, finished or
// begun.
func Enrolled(path string) (bool, error) {
	s, err := load(path)
	return s.Current.Certificate != "" || s.Joining != "", err
}
