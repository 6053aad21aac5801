package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"weir/pool/placement"
)

// Limits of what a trace may say, so that no sum of it can overflow.
const (
	maxGPUs   = placement.MaxGPUs // of one machine, and of one task
	maxAmount = 1 << 40           // of CPU milli, and of memory MiB
)

// Pod is one task of a trace.
type Pod struct {
	Name string
	placement.Demand
}

// ReadNodes reads machines from CSV with the columns cpu_milli, memory_mib,
// gpu (their number) and model, in any order. Errors name the file and line.
func ReadNodes(r io.Reader, file string) ([]placement.Node, error) {
	var nodes []placement.Node
	devices := int64(0)
	err := readRows(r, file, []string{"cpu_milli", "memory_mib", "gpu", "model"}, func(row row) error {
		n := placement.Node{ID: int64(len(nodes) + 1), Accepting: true,
			CPUMilli: row.amount("cpu_milli", maxAmount), MemoryMiB: row.amount("memory_mib", maxAmount)}
		model := row.text("model")
		if *row.err == nil && strings.Contains(model, "|") {
			return fmt.Errorf("model %q: a model's name has no |", model)
		}
		for i := range row.amount("gpu", maxGPUs) {
			devices++
			n.Devices = append(n.Devices, placement.Device{ID: devices, Index: int(i), Model: model, Mixed: true, Healthy: true})
		}
		nodes = append(nodes, n)
		return *row.err
	})
	return nodes, err
}

// ReadPods reads tasks from CSV with the columns name, cpu_milli, memory_mib,
// num_gpu and gpu_milli (of each GPU, rounded to GPU cores), in any order, and
// perhaps gpu_spec, the allowed models with | between them. Errors name the
// file and line.
func ReadPods(r io.Reader, file string) ([]Pod, error) {
	var pods []Pod
	err := readRows(r, file, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(row row) error {
		gpus, milli := row.amount("num_gpu", maxGPUs), row.amount("gpu_milli", milliPerGPU)
		if *row.err == nil && (gpus == 0) != (milli == 0) {
			return fmt.Errorf("%d GPUs with %d milli each: both or neither must be 0", gpus, milli)
		}
		p := Pod{Name: row.text("name"), Demand: placement.Demand{
			CPUMilli: row.amount("cpu_milli", maxAmount), HostMemoryMiB: row.amount("memory_mib", maxAmount),
			GPUs: int(gpus), Model: models(row.text("gpu_spec"))}}
		if milli > 0 {
			p.Cores = max((milli*placement.Whole+milliPerGPU/2)/milliPerGPU, 1)
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
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "|")
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

// amount is a column's value as a whole number from 0 to most.
func (r row) amount(column string, most int64) int64 {
	text := r.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case *r.err != nil:
	case err != nil && !errors.Is(err, strconv.ErrRange):
		*r.err = fmt.Errorf("%s: %q is not a whole number", column, clip(text))
	case err == nil && n < 0:
		*r.err = fmt.Errorf("%s: %d is negative", column, n)
	case err != nil || n > most:
		*r.err = fmt.Errorf("%s: %s is not in 0..%d", column, clip(text), most)
	}
	return min(max(n, 0), most)
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
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
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
