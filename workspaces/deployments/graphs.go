package deployments

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/models"
	"weir/policies"
	"weir/workspaces/graph"
	"weir/workspaces/onnx"
	"weir/workspaces/shard"
)

// PlanGraph returns the operators of a model in ONNX format as a task graph, and their plan on
// a machine. Whoever can read the file and its directory can do that. Errors: invalid, for a field
// of the machine; conflict, if the file is no model or cannot be planned.
func (s *Service) PlanGraph(ctx context.Context, actor policies.Actor, project int64, file models.FilePath,
	machine models.GraphMachine) (v models.ModelGraph, err error) {
	name := path.Base(string(file))
	at, folder, err := s.files.Folder(ctx, actor, project, models.FilePath(path.Dir(string(file))))
	if err != nil {
		return v, err
	}
	err = s.inTurn(ctx, func() (err error) {
		if v, err = planFile(folder, name, machine); err == nil {
			v.Path = models.FilePath(path.Join(string(at), name))
			if v.Times != "" {
				v.Times = models.FilePath(path.Join(string(at), string(v.Times)))
			}
		}
		return err
	})
	return v, err
}

// planFile plans a file of a folder.
func planFile(folder fs.FS, name string, machine models.GraphMachine) (v models.ModelGraph, err error) {
	g, unknown, err := readGraph(folder, name)
	if err != nil {
		return v, err
	}
	times := strings.TrimSuffix(name, path.Ext(name)) + ".times.yaml"
	measured, why, err := readTimes(folder, times)
	if err != nil {
		return v, err
	}
	timed := g.With(measured)
	if v, err = Graph(timed, unknown, machine); err == nil {
		if v.WhyNot, v.NoTimes = why, why.String(); timed.Measured() {
			v.Times = models.FilePath(times)
		}
		return v, nil
	}
	if e, ok := errors.AsType[*models.Error](err); ok && len(e.Fields) > 0 && e.Fields[0].Name == "graph" {
		err = refuse(name, e.Fields[0].Reason)
	}
	return v, err
}

func refuse(name string, why models.Text) error {
	return models.Conflict("The file %s cannot be planned: %s", models.VisibleName(name), why)
}

// readGraph reads the operators of a model.
func readGraph(folder fs.FS, name string) (g graph.Graph, unknown []string, err error) {
	if _, err := fs.Stat(folder, name); errors.Is(err, fs.ErrNotExist) {
		return g, nil, models.NotFound("file")
	}
	if !shard.IsONNX(name) {
		return g, nil, refuse(name, models.Say("its name does not end with .onnx"))
	}
	file, err := shard.Open(folder, name)
	if err != nil {
		return g, nil, err
	}
	m, why, err := onnx.Read(file, file.Size)
	if err = errors.Join(err, file.Close()); err == nil && why.Empty() {
		g, unknown, why = m.Graph()
	}
	if err == nil && !why.Empty() {
		err = refuse(name, why)
	}
	return g, unknown, err
}

// maxTimes is the most bytes of a file with measured times: the YAML library compares each of its
// keys with all others.
const maxTimes = 128 << 10

// readTimes reads the times that “weir graph run” has measured and written beside a model; there
// may be none, or a file that cannot be used, and why.
func readTimes(folder fs.FS, name string) (times graph.Times, why models.Text, err error) {
	content, err := shard.ReadSmall(folder, name, maxTimes)
	if e, ok := errors.AsType[*models.Error](err); ok && e.Kind == models.KindConflict {
		return nil, e.Message, nil
	}
	if err == nil && yaml.Unmarshal(content, &times) != nil {
		why = models.Say("The file %s has no measured times in YAML.", models.VisibleName(name))
	}
	return times, why, err
}

// Graph is a model's graph with its plan on a machine. Errors are about the field graph, or
// that of the machine.
func Graph(g graph.Graph, unknown []string, machine models.GraphMachine) (v models.ModelGraph, err error) {
	v = models.ModelGraph{Name: g.Name, Unknown: append([]string{}, unknown...), Branches: make([]models.ModelBranch, 0, len(g.Branches))}
	if v.Plan, err = graph.PlanOn(g, machine); err != nil {
		return v, err
	}
	var all []graph.Operator
	for _, b := range g.Branches {
		one := models.ModelBranch{Branch: b.Name}
		one.Operators, one.FLOPs, one.Kinds = kindsOf(b.Operators)
		v.Branches, all = append(v.Branches, one), append(all, b.Operators...)
	}
	v.Operators, v.FLOPs, v.Kinds = kindsOf(all)
	return v, nil
}

// kindsOf are operators by their kinds, those with the most operations first.
func kindsOf(operators []graph.Operator) (n int, flops float64, kinds []models.OperatorKind) {
	at := map[string]int{}
	for _, o := range operators {
		i, known := at[o.Kind]
		if !known {
			i = len(kinds)
			at[o.Kind], kinds = i, append(kinds, models.OperatorKind{Kind: o.Kind})
		}
		kinds[i].Operators++
		kinds[i].FLOPs += o.FLOPs
		flops += o.FLOPs
	}
	slices.SortFunc(kinds, func(a, b models.OperatorKind) int {
		return cmp.Or(cmp.Compare(b.FLOPs, a.FLOPs), cmp.Compare(b.Operators, a.Operators), cmp.Compare(a.Kind, b.Kind))
	})
	return len(operators), flops, kinds
}
