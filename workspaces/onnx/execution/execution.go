package execution

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/graph"
	"weir/workspaces/onnx"
)

//go:embed branch.py
var script []byte

const (
	maxBranches    = 1000 // each is a process
	branchesPrefix = ".branches-"
)

// Execution is a model that can be executed.
type Execution struct {
	Graph   graph.Graph // an operator for each branch
	Unknown []string    // kinds of operators whose operations are not known
	Runtime string      // such as ONNX Runtime 1.21.0
	results []string    // files
	work    string      // directory of the branches and of the values between them
	lock    *os.File    // of the directory of the results
}

// Open opens a model and reads it.
func Open(name string) (file *os.File, m onnx.Model, err error) {
	if file, err = os.Open(name); err != nil {
		return nil, m, err
	}
	info, err := file.Stat()
	why := models.Text{}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil {
		m, why, err = onnx.Read(file, info.Size())
	}
	if err == nil && !why.Empty() {
		err = models.Invalid("graph", "%s", why)
	}
	if err != nil {
		return nil, m, errors.Join(err, file.Close())
	}
	return file, m, nil
}

// Config is a model and how it is executed.
type Config struct {
	Model   string            // file
	Inputs  map[string]string // files by the names of values; that of the only input can be without a name
	Results string            // directory
	Python  string            // program that can import a runtime
	Resume  bool              // keeps what executions of others have left in the directory
}

// Prepare writes the branches of a model below the directory of the results. The same model with
// the same inputs makes the same graph. One process at a time can use the directory.
func Prepare(c Config) (e Execution, err error) {
	file, m, err := Open(c.Model)
	if err != nil {
		return e, err
	}
	defer file.Close()
	p := preparation{Config: c, file: file, m: m}
	parts, why := m.Parts()
	if p.parts = parts; why.Empty() {
		e.Graph, e.Unknown, why = m.Graph()
	}
	if why.Empty() && len(p.parts) > maxBranches {
		why = models.Say("it has %d branches; at most %d can be executed", len(p.parts), maxBranches)
	}
	if !why.Empty() {
		return e, models.Invalid("graph", "%s", why)
	}
	if p.Inputs, err = named(m.Inputs(), c.Inputs); err != nil {
		return e, err
	}
	if p.Results, err = filepath.Abs(c.Results); err != nil {
		return e, err
	}
	if err := p.prepare(&e); err != nil {
		return e, errors.Join(err, e.Close())
	}
	return e, nil
}

// named are the files of all inputs by their names.
func named(wanted []string, given map[string]string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range wanted {
		file, is := given[name]
		if !is && len(wanted) == 1 {
			file = given[""]
		}
		if file == "" {
			return nil, fmt.Errorf("the input %s is missing; the model needs %s", name, strings.Join(wanted, ", "))
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		files[name] = path
	}
	if len(given) > len(wanted) {
		return nil, fmt.Errorf("the model needs %s and no other inputs", strings.Join(wanted, ", "))
	}
	return files, nil
}

// preparation is a model that is being prepared.
type preparation struct {
	Config
	file  *os.File
	m     onnx.Model
	parts []onnx.Part
}

func (p *preparation) prepare(e *Execution) error {
	hash, err := p.hash()
	if err != nil {
		return err
	}
	e.work = filepath.Join(p.Results, branchesPrefix+hash)
	if err := os.MkdirAll(e.work, 0o777); err != nil {
		return err
	}
	if e.lock, err = lock(p.Results); err != nil {
		return err
	}
	if !p.Resume {
		if err := p.removeOthers(filepath.Base(e.work)); err != nil {
			return err
		}
	}
	branch := filepath.Join(e.work, "branch.py")
	if err := os.WriteFile(branch, script, 0o666); err != nil {
		return err
	}
	if e.Runtime, err = runtime(p.Python, branch); err != nil {
		return err
	}
	jobs, mean := p.jobs(e), meanFLOPs(e.Graph)
	if !p.Resume {
		for _, file := range e.results { // of an earlier execution, which must not pass for those of this one
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for i := range e.Graph.Branches {
		description := filepath.Join(e.work, fmt.Sprintf("%d.json", i))
		if err := p.write(i, jobs[i], description); err != nil {
			return err
		}
		b := &e.Graph.Branches[i]
		o := whole(b.Operators, mean)
		o.Command = []string{p.Python, branch, description}
		b.Operators = []graph.Operator{o}
	}
	return e.Graph.Check()
}

// lock locks a directory until the file is closed.
func lock(dir string) (*os.File, error) {
	file, err := os.Create(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("another process writes its results to %s", dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// removeOthers removes what earlier executions have left of other models or inputs.
func (p *preparation) removeOthers(work string) error {
	entries, err := os.ReadDir(p.Results)
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, branchesPrefix) && name != work {
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.Results, name)))
		}
	}
	return err
}

// hash is a short hash of the model and its inputs.
func (p *preparation) hash() (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, p.file); err != nil {
		return "", err
	}
	for _, name := range p.m.Inputs() {
		file, err := os.Open(p.Inputs[name])
		if err == nil {
			_, err = io.Copy(h, file)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return "", fmt.Errorf("the input %s: %w", name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// runtime is what Python executes models with.
func runtime(python, branch string) (string, error) {
	cmd := exec.Command(python, branch)
	var said strings.Builder
	cmd.Stderr = &said
	name, err := cmd.Output()
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		lines := strings.Split(text, "\n")
		err = errors.New(lines[len(lines)-1])
	}
	if err != nil {
		return "", fmt.Errorf("the model can be planned only: %w", err)
	}
	if len(name) == 0 {
		return "", fmt.Errorf("the model can be planned only: %s names no runtime", python)
	}
	return strings.TrimSpace(string(name)), nil
}

// meanFLOPs is the mean of the known operations of a graph's operators; 0 if none are known.
func meanFLOPs(g graph.Graph) float64 {
	sum, known := 0., 0.
	for _, b := range g.Branches {
		for _, o := range b.Operators {
			if o.FLOPs > 0 {
				sum, known = sum+o.FLOPs, known+1
			}
		}
	}
	return sum / max(known, 1)
}

// whole is the operators of a branch as one. Those of unknown operations count as the mean.
func whole(operators []graph.Operator, mean float64) graph.Operator {
	o := graph.Operator{Name: graph.Whole(len(operators))} // not as one of a plan of the model
	for _, one := range operators {
		o.FLOPs += cmp.Or(one.FLOPs, mean)
	}
	return o
}

// Finish checks that all results are there, and removes the branches and the values between them.
func (e Execution) Finish() error {
	for _, file := range e.results {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("a result is missing, so all must be computed anew, without --resume: %w", err)
		}
	}
	return os.RemoveAll(e.work)
}

// Close lets others use the directory of the results.
func (e Execution) Close() error {
	if e.lock == nil {
		return nil
	}
	return e.lock.Close()
}
