package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"weir/models"
	"weir/workspaces/deployments/tokenizer"
)

// Store keeps the parts of deployments on the disk, in a directory of each project: its
// content-addressed files, and for each part a directory that its sandbox sees.
type Store struct {
	Dir string

	writing sync.RWMutex // locked for reading while parts are written, which Sweep must not take for unused

	mu   sync.Mutex
	kept map[int64]*kept // by deployment
}

const (
	deploymentPrefix = "deployment-"
	projectPrefix    = "project-"
)

// ProjectDir is the directory of a project, in that of a Store.
func ProjectDir(project int64) string { return fmt.Sprint(projectPrefix, project) }

// directory is that of a deployment. Earlier versions had it beside that of the project.
func (s *Store) directory(d models.Deployment) string {
	name := fmt.Sprint(deploymentPrefix, d.ID)
	dir := filepath.Join(s.Dir, ProjectDir(d.ProjectID), name)
	_ = os.Rename(filepath.Join(s.Dir, name), dir) // mostly there is none
	return dir
}

// Directory is the directory of a part.
func (s *Store) Directory(d models.Deployment, part int64) string {
	return filepath.Join(s.directory(d), fmt.Sprint(part))
}

// Generation is what was kept of a deployment.
func (s *Store) Generation(d models.Deployment) (Generation, error) {
	k := s.keptOf(d.ID)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read {
		return k.Generation, nil
	}
	g, err := s.readKept(s.directory(d), d.Vocabulary)
	if errors.Is(err, fs.ErrNotExist) {
		return Generation{}, nil // not written yet, or by an earlier version, which kept nothing
	}
	if err == nil {
		k.Generation, k.read = g, true
	}
	return g, err
}

// kept is what was kept of a deployment, when it was read.
type kept struct {
	mu   sync.Mutex // locked while it is read, which can take long
	read bool
	Generation
}

// maxKept bounds what was read of deployments: each may have a tokenizer of many megabytes.
const maxKept = 32

// keptOf is what was kept of a deployment, perhaps not read yet.
func (s *Store) keptOf(deployment int64) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[deployment]; k != nil {
		return k
	}
	if s.kept == nil {
		s.kept = map[int64]*kept{}
	}
	for other := range s.kept { // of deployments that another server has stopped, too
		if len(s.kept) >= maxKept {
			delete(s.kept, other)
		}
	}
	k := &kept{}
	s.kept[deployment] = k
	return k
}

func (s *Store) readKept(dir string, vocabulary int64) (g Generation, err error) {
	text, err := os.ReadFile(filepath.Join(dir, storedGenerationName))
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil {
		return g, err
	}
	content, err := os.ReadFile(filepath.Join(dir, tokenizerName))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	if g.Embedding != nil {
		vocabulary = g.Embedding.Vocabulary
	}
	used, refused := tokenizer.Read(content, vocabulary)
	if refused != nil {
		g.NoText = refused.Error()
	}
	g.Text = used
	return g, nil
}
