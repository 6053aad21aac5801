package web

import (
	"context"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"weir/models"
)

// ModelFactsView is the page of a model in a directory.
//
// Fields: batch, context, cores, service_type, device.
type ModelFactsView struct {
	FilesView
	Form         Form
	ServiceTypes []Option
	Report       models.ModelReport
	Done         bool // there is a report
	CanSplit     bool // the reader may describe splits
}

// deployURL is the form that deploys the model as planned; empty if it cannot be deployed. It has no number of
// parts: updates keep one that is requested, also when the model has grown.
func (v ModelFactsView) deployURL() templ.SafeURL {
	if !v.Report.Plan.Possible || !v.Report.NotServed.Empty() {
		return ""
	}
	q := url.Values{"project_id": {number(v.ProjectID)}, "path": {string(v.Directory.Path)},
		"context": {number(v.Report.Memory.Context)}, "batch": {v.Form.Value("batch")},
		"service_type": {v.Form.Value("service_type")}}
	if cores := v.Form.Value("cores"); cores != "100" { // the default
		q.Set("cores", cores)
	}
	return templ.SafeURL("/deployments/new?" + q.Encode())
}

// presetsURL is where splits are described for models like this.
func (v ModelFactsView) presetsURL() templ.SafeURL {
	return templ.SafeURL(splitPresetsPath(v.ProjectID) + "?" + url.Values{"architecture": {v.Report.Facts.Architecture}}.Encode())
}

// maxLayerRows is the most layers that the page lists.
const maxLayerRows = 1000

// layers are those that the page lists.
func (v ModelFactsView) layers() []models.ModelLayer {
	return v.Report.Facts.Layers[:min(len(v.Report.Facts.Layers), maxLayerRows)]
}

// largestLayer is the bytes of the largest layer.
func (v ModelFactsView) largestLayer() (most int64) {
	for _, l := range v.Report.Facts.Layers {
		most = max(most, l.Bytes)
	}
	return most
}

// factPair is a name with its value; unknown values are empty.
type factPair struct{ Name, Value string }

func known(n int64) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

// facts are the model in words.
func (v ModelFactsView) facts(ctx context.Context) []factPair {
	f := v.Report.Facts
	list := []factPair{
		{T(ctx, "Architecture"), f.Architecture}, {T(ctx, "Parameters"), parameters(f.Parameters)},
		{T(ctx, "Weights"), fileSize(f.Bytes)}, {T(ctx, "Tensors"), count(f.Tensors)}, {T(ctx, "Files"), count(f.Files)},
		{T(ctx, "Hidden size"), known(f.Hidden)}, {T(ctx, "Attention heads"), known(f.Heads)},
		{T(ctx, "Key and value heads"), known(f.KVHeads)}, {T(ctx, "Longest context"), known(f.MaxContext)},
		{T(ctx, "Vocabulary"), known(f.Vocabulary)},
	}
	if f.Experts > 0 {
		list = append(list, factPair{T(ctx, "Experts"), T(ctx, "%d, of which a token uses %d", f.Experts, f.ExpertsUsed)})
	}
	for _, t := range f.Types {
		list = append(list, factPair{t.Type, fileSize(t.Bytes)})
	}
	return list
}

// parameters formats a number of parameters with three digits: 6.74 B.
func parameters(n int64) string {
	value, unit := float64(n), 0
	for ; value >= 1000 && unit < 4; unit++ {
		value /= 1000
	}
	if unit == 0 {
		return number(n)
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + " " + []string{"", "K", "M", "B", "T"}[unit]
}

// layerName names a layer for people.
func layerName(ctx context.Context, name string) string {
	switch name {
	case models.LayerInput:
		return T(ctx, "input")
	case models.LayerOutput:
		return T(ctx, "output")
	default:
		return name
	}
}

// partItems are the first and the last item of a part.
func partItems(ctx context.Context, split models.ModelSplit, p models.ModelPart) string {
	first, last := layerName(ctx, p.First), layerName(ctx, p.Last)
	switch {
	case split == models.SplitHeads:
		return T(ctx, "head groups %s to %s", first, last)
	case split == models.SplitExperts:
		return T(ctx, "experts %s to %s", first, last)
	case first == last:
		return first
	default:
		return T(ctx, "%s to %s", first, last)
	}
}

// passTime is the time of a pass.
func passTime(ctx context.Context, seconds float64) string {
	if seconds < 1 {
		return T(ctx, "%s ms", strconv.FormatFloat(seconds*1000, 'g', 3, 64))
	}
	return T(ctx, "%s s", strconv.FormatFloat(seconds, 'g', 3, 64))
}
