package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
)

// maxFileName is how many bytes of the name of a result its file name has.
const maxFileName = 200

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
func (p *preparation) jobs(e *Execution) []job {
	files := maps.Clone(p.Inputs) // and those of the values between parts
	jobs := make([]job, len(p.parts))
	for i, part := range p.parts { // each stands after those of which it uses values
		jobs[i] = job{Model: filepath.Join(e.work, fmt.Sprintf("%d.onnx", i)), Inputs: []input{}, Outputs: []output{}}
		for _, name := range part.Inputs {
			jobs[i].Inputs = append(jobs[i].Inputs, input{name, files[name]})
		}
		for _, name := range part.Outputs {
			files[name] = filepath.Join(e.work, fmt.Sprintf("value-%d.npy", len(files)))
			own := p.resultFiles(name)
			e.results = append(e.results, own...)
			jobs[i].Outputs = append(jobs[i].Outputs, output{name, append([]string{files[name]}, own...)})
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
