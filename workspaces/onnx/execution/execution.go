package execution

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"weir/models"
	"weir/workspaces/graph"
	"weir/workspaces/onnx"
)

//go:embed branch.py
var script []byte

const (
	maxBranches = 1000 // each is a process
	maxFileName = 200  // bytes of the name of a result in a file name
)

// Execution is a model that can be executed.
type Execution struct {
	Graph   graph.Graph // an operator for each branch
	Unknown []string    // kinds of operators whose operations are not known
	Runtime string      // such as ONNX Runtime 1.21.0
	work    string      // directory of the branches and of the values between them
}

// Config is a model and how it is executed.
type Config struct {
	Model   string            // file
	Inputs  map[string]string // files by the names of values; that of the only input can be without a name
	Results string            // directory
	Python  string            // program that can import a runtime
}

// Prepare writes the branches of a model below the directory of the results. The same model with
// the same inputs makes the same graph.
func Prepare(c Config) (e Execution, err error) {
	file, err := os.Open(c.Model)
	if err != nil {
		return e, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return e, err
	}
	if !info.Mode().IsRegular() {
		return e, errors.New("it is not a regular file")
	}
	m, why, err := onnx.Read(file, info.Size())
	if err != nil {
		return e, err
	}
	p := preparation{Config: c, file: file, m: m}
	if why.Empty() {
		p.parts, why = m.Parts()
	}
	if why.Empty() {
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
	return e, p.prepare(&e)
}

// named are the files of all inputs by their names.
func named(wanted []string, given map[string]string) (map[string]string, error) {
	files := map[string]string{}
	for name, file := range given {
		if name == "" && len(wanted) == 1 {
			name = wanted[0]
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		files[name] = path
	}
	for _, name := range wanted {
		if files[name] == "" {
			return nil, fmt.Errorf("the input %s is missing; the model needs %s", name, strings.Join(wanted, ", "))
		}
	}
	if len(files) > len(wanted) {
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
	e.work = filepath.Join(p.Results, ".branches-"+hash)
	if err := os.MkdirAll(e.work, 0o777); err != nil {
		return err
	}
	branch := filepath.Join(e.work, "branch.py")
	if err := os.WriteFile(branch, script, 0o666); err != nil {
		return err
	}
	if e.Runtime, err = runtime(p.Python, branch); err != nil {
		return err
	}
	jobs, mean := p.jobs(e.work), meanFLOPs(e.Graph)
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
	return strings.TrimSpace(string(name)), nil
}

// job is what branch.py reads.
type job struct {
	Model   string   `json:"model"`
	Inputs  []input  `json:"inputs"`
	Outputs []output `json:"outputs"`
}

type input struct {
	Name string `json:"name"`
	File string `json:"file"`
}

type output struct {
	Name  string   `json:"name"`
	Files []string `json:"files"`
}

// jobs are the files of the parts: their models, what they need and what they compute.
func (p *preparation) jobs(work string) []job {
	files := map[string]string{} // of the values between parts
	for name, file := range p.Inputs {
		files[name] = file
	}
	jobs := make([]job, len(p.parts))
	for i, part := range p.parts { // each stands after those of which it uses values
		jobs[i] = job{Model: filepath.Join(work, fmt.Sprintf("%d.onnx", i)), Inputs: []input{}, Outputs: []output{}}
		for _, name := range part.Inputs {
			jobs[i].Inputs = append(jobs[i].Inputs, input{name, files[name]})
		}
		for _, name := range part.Outputs {
			files[name] = filepath.Join(work, fmt.Sprintf("value-%d.npy", len(files)))
			jobs[i].Outputs = append(jobs[i].Outputs, output{name, append([]string{files[name]}, p.resultFiles(name)...)})
		}
	}
	return jobs
}

// resultFiles is the file of a result; none if a value is no result.
func (p *preparation) resultFiles(value string) (files []string) {
	for i, name := range p.m.Outputs() {
		if name != value {
			continue
		}
		if name = url.PathEscape(name); len(name) > maxFileName {
			name = fmt.Sprintf("result-%d", i+1)
		}
		return []string{filepath.Join(p.Results, name+".npy")}
	}
	return nil
}

// write writes a part and its description.
func (p *preparation) write(i int, j job, description string) error {
	b, err := json.Marshal(j)
	if err == nil {
		err = os.WriteFile(description, b, 0o666)
	}
	if err != nil {
		return err
	}
	file, err := os.Create(j.Model)
	if err != nil {
		return err
	}
	return errors.Join(p.m.WritePart(file, p.file, p.parts[i]), file.Close())
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
	o := graph.Operator{Name: fmt.Sprintf("%d operators", len(operators))}
	if len(operators) == 1 {
		o.Name = operators[0].Name
	}
	for _, one := range operators {
		o.FLOPs += cmp.Or(one.FLOPs, mean)
	}
	return o
}

// Remove removes the branches and the values between them. The results stay.
func (e Execution) Remove() error { return os.RemoveAll(e.work) }
