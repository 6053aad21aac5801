package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"weir/pool/placement/fleet"
)

// Pod is one task of a trace.
type Pod struct {
	Name string
	fleet.Task
}

// ReadNodes reads machines from CSV with the columns cpu_milli, memory_mib,
// gpu (their number) and model, in any order. Errors name the file and line.
func ReadNodes(r io.Reader, file string) ([]fleet.Node, error) {
	var nodes []fleet.Node
	err := readRows(r, file, []string{"cpu_milli", "memory_mib", "gpu", "model"}, func(row row) error {
		n := fleet.Node{CPUMilli: row.number("cpu_milli"), MemoryMiB: row.number("memory_mib"),
			GPUs: int(row.number("gpu")), Model: row.text("model")}
		if *row.err == nil {
			*row.err = n.Check()
		}
		if *row.err == nil && strings.Contains(n.Model, "|") {
			return fmt.Errorf("model %q: a model's name has no |", n.Model)
		}
		nodes = append(nodes, n)
		return *row.err
	})
	return nodes, err
}

// ReadPods reads tasks from CSV with the columns name, cpu_milli, memory_mib,
// num_gpu and gpu_milli (of each GPU), in any order, and perhaps gpu_spec, the
// allowed models with | between them. Errors name the file and line.
func ReadPods(r io.Reader, file string) ([]Pod, error) {
	var pods []Pod
	err := readRows(r, file, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(row row) error {
		p := Pod{Name: row.text("name"), Task: fleet.Task{
			CPUMilli: row.number("cpu_milli"), MemoryMiB: row.number("memory_mib"),
			GPUs: int(row.number("num_gpu")), GPUMilli: row.number("gpu_milli"),
			Models: models(row.text("gpu_spec"))}}
		if *row.err == nil {
			*row.err = p.Check()
		}
		pods = append(pods, p)
		return *row.err
	})
	return pods, err
}

func models(spec string) string {
	names := strings.Split(spec, "|")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	return fleet.JoinModels(names)
}

// row is a line of a file, by the names of its columns. The first value that
// is wrong stays in *err.
type row struct {
	columns map[string]int
	fields  []string
	err     *error
}

// text is a column's value, or nothing where there is no such column.
func (r row) text(column string) string {
	if i, ok := r.columns[column]; ok {
		return strings.TrimSpace(r.fields[i])
	}
	return ""
}

// number is a column's value as a whole number that is not negative.
func (r row) number(column string) int64 {
	text := r.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case *r.err != nil:
	case errors.Is(err, strconv.ErrRange):
		*r.err = fmt.Errorf("%s: %s is too large", column, clip(text))
	case err != nil:
		*r.err = fmt.Errorf("%s: %q is not a whole number", column, clip(text))
	case n < 0:
		*r.err = fmt.Errorf("%s: %d is negative", column, n)
	}
	return min(max(n, 0), fleet.MaxAmount+1)
}

// clip keeps an error readable whatever a file holds.
func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

// readRows reads a header with the wanted columns and at least one line more.
func readRows(r io.Reader, file string, wanted []string, take func(row) error) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty", file)
	} else if err != nil {
		return malformed(file, err)
	}
	columns, err := columnsOf(header, wanted)
	if err != nil {
		return fmt.Errorf("%s:1: %w", file, err)
	}
	for rows := 0; ; rows++ {
		fields, err := in.Read()
		switch {
		case errors.Is(err, io.EOF) && rows == 0:
			return fmt.Errorf("%s:1: nothing follows the header", file)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return malformed(file, err)
		}
		if err := take(row{columns, fields, new(error)}); err != nil {
			line, _ := in.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
}

// malformed names the line of what is not CSV.
func malformed(file string, err error) error {
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		return fmt.Errorf("%s:%d: %w", file, parse.Line, parse.Err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

func columnsOf(header, wanted []string) (map[string]int, error) {
	columns := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, twice := columns[name]; twice && name != "" {
			return nil, fmt.Errorf("column %q stands twice", clip(name))
		}
		columns[name] = i
	}
	var missing []string
	for _, name := range wanted {
		if _, ok := columns[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no column %s", strings.Join(missing, ", "))
	}
	return columns, nil
}
