package serving

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"weir/models"
	"weir/workspaces/shard"
	"weir/workspaces/shard/split"
)

//go:embed *.py
var programs embed.FS // of a part

// Names inside the sandbox of a part.
const (
	Target      = "/deployment" // where the directory of the part is mounted, read-only
	KeyName     = "WEIR_PART_KEY"
	AddressName = "WEIR_PART_ADDRESS" // where it listens

	workerName = "worker.py"
)

// Command is the program of a part.
var Command = []string{"python3", Target + "/" + workerName}

// connectionsPerSequence is how many connections a part accepts for each sequence that is computed
// at once: each server that sends requests may open one that waits.
const connectionsPerSequence = 8

// part is what the worker reads besides the tensors.
type part struct {
	Config      shard.Config `json:"config"`
	First       bool         `json:"first"`
	Last        bool         `json:"last"`
	Context     int64        `json:"context"`
	Connections int64        `json:"connections"`
	Sequences   int64        `json:"sequences"`         // that are computed at once
	Add         bool         `json:"add,omitempty"`     // it has some heads or experts of all layers; the front adds up
	Experts     bool         `json:"experts,omitempty"` // it has some experts
	Assists     bool         `json:"assists,omitempty"` // of these parts, another one computes everything else
	Offset      int64        `json:"offset,omitempty"`  // of the vocabulary, it has the tokens from this one on
	Column      int64        `json:"column,omitempty"`  // of the patches of an image, it computes the hidden values from this one on

	Pooling string `json:"pooling,omitempty"` // of a text encoder; see [Embedding]
	Filler  *int64 `json:"filler,omitempty"`  // token behind whose number the positions of a text begin
}

// partOf describes a part of a deployment.
func partOf(m shard.Model, g Generation, d models.Deployment, number int) part {
	p := part{Config: m.Config, First: number == 0, Last: number == len(d.Plan.Parts)-1, Context: d.Context,
		Connections: connectionsPerSequence * (d.Batch + 1), Sequences: d.Batch}
	if g.Embedding != nil {
		p.Pooling, p.Filler = g.Embedding.Pooling, families[m.Facts.Architecture].filler(m.Config)
	}
	if d.Plan.Split == models.SplitHeads {
		p.First, p.Last, p.Add = true, true, true
		from := int64(d.Plan.Parts[number].From)
		p.Offset = shard.DivisionOf(m.Facts.Vocabulary, from, m.Facts.KVHeads)
		p.Column = shard.DivisionOf(m.Facts.Hidden, from, m.Facts.KVHeads)
	}
	if d.Plan.Split == models.SplitExperts {
		p.First, p.Last, p.Add, p.Experts, p.Assists = true, true, true, true, number > 0
	}
	return p
}

// Write writes the parts of a deployment of the model in a folder. Parts whose content is there are
// not written again. The plan was made of the same files: the error is a conflict if not.
func (s *Store) Write(ctx context.Context, d models.Deployment, folder fs.FS) (list []models.WrittenPart, err error) {
	s.writing.RLock()
	defer s.writing.RUnlock()
	m, err := shard.Read(folder)
	if err != nil {
		return nil, err
	}
	generation, err := readGeneration(folder, m)
	if err != nil {
		return nil, err
	}
	parts := filepath.Join(s.Dir, ProjectDir(d.ProjectID))
	if err := errors.Join(makeDir(s.Dir), makeDir(parts)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(parts)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	manifest, err := split.Split(ctx, folder, root, m, d.Plan)
	if err != nil {
		return nil, withReason(err, m.Facts.Bytes)
	}
	for i, p := range manifest.Parts {
		if err := s.lay(filepath.Join(parts, p.File), s.Directory(d, int64(i)), partOf(m, generation, d, i)); err != nil {
			return nil, err
		}
		list = append(list, models.WrittenPart{File: p.File, Size: p.Size})
	}
	dir := s.directory(d)
	return list, errors.Join(generation.keep(dir, folder), syncTree(dir), syncDir(parts))
}

// WriteWorker gives a part the program of this version.
func (s *Store) WriteWorker(d models.Deployment, part int64) error {
	dir := s.Directory(d, part)
	return errors.Join(os.Chmod(dir, 0o755), // Python lists where it imports from
		fs.WalkDir(programs, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := programs.ReadFile(name)
			at := filepath.Join(dir, name)
			return errors.Join(err, os.WriteFile(at+"-new", content, 0o644), os.Rename(at+"-new", at))
		}))
}

// isProgram reports whether a file is of the program of a part.
func isProgram(name string) bool { return filepath.Ext(name) == filepath.Ext(workerName) }

// LinkParts gives a deployment what another one of its project, with the same plan, has on the disk. Its
// parts are not there twice.
func (s *Store) LinkParts(d models.Deployment, of int64) error {
	s.writing.RLock()
	defer s.writing.RUnlock()
	from, to := s.directory(models.Deployment{ProjectID: d.ProjectID, ID: of}), s.directory(d)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		name, escapes := filepath.Rel(from, path)
		switch at := filepath.Join(to, name); {
		case err != nil || escapes != nil:
			return errors.Join(err, escapes)
		case e.IsDir():
			return makeDir(at)
		case isProgram(name): // which is written when the part is started
			return nil
		default:
			return os.Link(path, at)
		}
	})
	return errors.Join(err, syncTree(to), syncDir(filepath.Dir(to)))
}

// withReason is the error with what is lacking, if the disk is full.
func withReason(err error, size int64) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return models.NoSpace(err, "The storage has no space for the parts, which need %s.", models.FormatBytes(size))
	}
	return err
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
		writeSynced(filepath.Join(dir, "part.json"), text, 0o644))
}
