package shard

import (
	"slices"
	"strings"

	"weir/models"
)

// Preset is how models of a service type are split.
type Preset struct {
	ServiceType   string              `yaml:"service_type"`
	Split         models.ModelSplit   `yaml:"split"`
	Combine       models.ModelCombine `yaml:"combine"`
	Architectures []string            `yaml:"architectures"` // ends of names, for which it is used by itself; none: for any
	OnRequest     bool                `yaml:"on_request"`    // it is never used by itself
	Cuts          []string            `yaml:"cuts"`          // of layers: those before which it is cut; none: before any
}

// splits are what models need for a split.
var splits = map[models.ModelSplit]struct {
	fits func(models.ModelFacts) bool
	work func(workload) work
	why  models.Text
	lack models.Text
}{
	models.SplitLayers: {func(f models.ModelFacts) bool { return len(f.Layers) > 1 && len(f.Layers) <= MaxItems }, workload.byLayers,
		models.Say("It is cut between layers."), models.Say("it needs from 2 to %d layers", int64(MaxItems))},
	models.SplitHeads: {func(f models.ModelFacts) bool { return f.KVHeads > 1 && f.KVHeads <= MaxItems }, workload.byHeads,
		models.Say("The attention heads of each layer are divided, and with them all matrices; heads that share keys and values stay together."),
		models.Say("it needs from 2 to %d attention heads for keys and values in config.json", int64(MaxItems))},
	models.SplitExperts: {func(f models.ModelFacts) bool { return f.Experts > 1 && f.Experts <= MaxItems }, workload.byExperts,
		models.Say("The experts of each layer are divided into groups; everything else is on each part."),
		models.Say("it needs from 2 to %d experts", int64(MaxItems))},
}

// combines say what is done with the results of parts.
var combines = map[models.ModelCombine]models.Text{
	models.CombinePassOn:      models.Say("Each part passes its result on to the next one."),
	models.CombineConcatenate: models.Say("The results of the parts are concatenated."),
	models.CombineSum:         models.Say("The results of the parts are added in each layer."),
	models.CombineVote:        models.Say("The result that most parts have is used."),
}

// IsSplit reports whether a preset can have such a split.
func IsSplit(s models.ModelSplit) bool {
	_, known := splits[s]
	return known
}

// IsCombine reports whether the results of parts can be combined like this.
func IsCombine(c models.ModelCombine) bool {
	_, known := combines[c]
	return known
}

// Check returns what is wrong with a preset; empty: nothing.
func (p Preset) Check() string {
	if !IsSplit(p.Split) {
		return "split is not known"
	}
	if !IsCombine(p.Combine) {
		return "combine is not known"
	}
	if p.ServiceType == "" {
		return "service_type is missing"
	}
	if len(p.Cuts) > 0 && p.Split != models.SplitLayers {
		return "cuts are for splits by layers"
	}
	return ""
}

// missing is a layer before which a preset cuts, and which a model does not have; empty: none.
func (p Preset) missing(f models.ModelFacts) string {
	for _, name := range p.Cuts {
		if !slices.ContainsFunc(f.Layers, func(l models.ModelLayer) bool { return l.Name == name }) {
			return name
		}
	}
	return ""
}

// suits reports whether the preset is used for a model by itself.
func (p Preset) suits(f models.ModelFacts) bool {
	if p.OnRequest || !splits[p.Split].fits(f) || p.missing(f) != "" {
		return false
	}
	for _, end := range p.Architectures {
		if strings.HasSuffix(f.Architecture, end) {
			return true
		}
	}
	return len(p.Architectures) == 0
}

// Request is what a plan is for.
type Request struct {
	Load
	ServiceType string   // empty: by the architecture
	Presets     []Preset // the first one that suits, and by which the model fits, is used
	Devices     []models.ModelDevice
	LeftOut     []models.Text // why others are left out
	Fewest      bool          // use the same share of each of no more devices than needed, of one machine
	All         bool          // use all devices, also if one is enough
}

// Plan places a model on devices: on one if it fits there, else on several by the split of
// its service type. The error is for the field service_type.
func Plan(f models.ModelFacts, r Request) (models.ModelPlan, error) {
	w := workload{f, r.Load, Memory(f, r.Load)}
	plan := models.ModelPlan{Split: models.SplitNone, Combine: models.CombineNone, MarginPercent: MarginPercent}
	suitable, err := r.suitable(f)
	if err != nil || len(r.Devices) == 0 {
		plan.Say(models.Say("There is no device with available memory."))
		plan.Say(r.LeftOut...)
		return plan, err
	}
	if (!r.All || len(r.Devices) == 1) && r.planOne(&plan, w) {
		return plan, nil
	}
	plan.Say(r.LeftOut...)
	if len(suitable) == 0 {
		plan.Say(models.Say("No split is known for this model."))
		return plan, nil
	}
	return r.planFirst(plan, w, suitable), nil
}

// planFirst splits the model by the first preset by which it fits; if there is none, it says so of the first one.
func (r Request) planFirst(plan models.ModelPlan, w workload, suitable []Preset) (first models.ModelPlan) {
	var refused []models.Text
	for i, preset := range suitable {
		attempt := plan
		attempt.Reasons = slices.Concat(plan.Reasons, refused)
		if r.planSplit(&attempt, w, preset); attempt.Possible {
			return attempt
		}
		if i == 0 {
			first = attempt
		}
		why := attempt.Reasons[len(attempt.Reasons)-1]
		refused = append(refused, models.Say("It is not split as the service type %s: %s", preset.ServiceType, why))
	}
	first.Say(refused[1:]...)
	return first
}

// planSplit splits the model by a preset.
func (r Request) planSplit(plan *models.ModelPlan, w workload, chosen Preset) {
	split := splits[chosen.Split]
	plan.ServiceType, plan.Split, plan.Combine = chosen.ServiceType, chosen.Split, chosen.Combine
	plan.Say(models.Say("It is split as the service type %s.", chosen.ServiceType), split.why, combines[chosen.Combine])
	if len(chosen.Cuts) > 0 {
		plan.Say(models.Say("It may be cut before %s.", firstCuts(chosen.Cuts)))
	}
	r.planParts(plan, split.work(w).joined(chosen.Cuts))
}

// firstCuts are the first of some cuts, for people.
func firstCuts(cuts []string) string {
	const most = 8
	text := models.VisibleName(strings.Join(cuts[:min(len(cuts), most)], ", "))
	if len(cuts) > most {
		text += ", …"
	}
	return text
}

// suitable is the preset of the service type or, without one, those that suit, without those that split like one
// before them.
func (r Request) suitable(f models.ModelFacts) (list []Preset, err error) {
	var names []string
	for _, p := range r.Presets {
		names = append(names, p.ServiceType)
		alike := func(o Preset) bool { return o.Split == p.Split && slices.Equal(o.Cuts, p.Cuts) }
		switch {
		case r.ServiceType == "" && p.suits(f) && !slices.ContainsFunc(list, alike):
			list = append(list, p)
		case r.ServiceType == "" || p.ServiceType != r.ServiceType:
		case !splits[p.Split].fits(f):
			return nil, models.Invalid("service_type", "%s does not suit this model: %s", p.ServiceType, splits[p.Split].lack)
		case p.missing(f) != "":
			return nil, models.Invalid("service_type", "%s does not suit this model: it has no layer %s", p.ServiceType,
				models.VisibleName(p.missing(f)))
		default:
			return []Preset{p}, nil
		}
	}
	if r.ServiceType != "" {
		return nil, models.Invalid("service_type", "must be one of %s", strings.Join(names, ", "))
	}
	return list, nil
}

// planOne puts the model on one device if it fits: of those where it fits on the fastest, and
// of these on that with the least memory.
func (r Request) planOne(plan *models.ModelPlan, w workload) bool {
	var largest, best *models.ModelDevice
	for i := range r.Devices {
		d := &r.Devices[i]
		if largest == nil || d.MemoryBytes > largest.MemoryBytes {
			largest = d
		}
		better := best == nil || d.TFLOPS > best.TFLOPS || d.TFLOPS == best.TFLOPS && d.MemoryBytes < best.MemoryBytes
		if better && w.Total <= usable(d.MemoryBytes) {
			best = d
		}
	}
	if best == nil {
		plan.Say(models.Say("The model needs %s. The largest device has %s, of which %s can be used: %d%% of its memory is kept free.",
			models.FormatBytes(w.Total), models.FormatBytes(largest.MemoryBytes),
			models.FormatBytes(usable(largest.MemoryBytes)), int64(MarginPercent)))
		return false
	}
	plan.Say(models.Say("The model needs %s. %s has %s, so one device is enough; %d%% of its memory is kept free.",
		models.FormatBytes(w.Total), best.Name, models.FormatBytes(best.MemoryBytes), int64(MarginPercent)))
	shared, experts := w.modelFLOPs()
	part := models.ModelPart{Device: *best, Until: len(w.Layers), Weights: w.Weights, KVCache: w.KVCache,
		Activations: w.Activations, Total: w.Total, Seconds: (shared + experts) / (best.TFLOPS * tera)}
	if n := len(w.Layers); n > 0 {
		part.First, part.Last = w.Layers[0].Name, w.Layers[n-1].Name
	}
	plan.Possible, plan.Parts, plan.Seconds = true, []models.ModelPart{part}, part.Seconds
	return true
}

// planParts divides the items among several devices.
func (r Request) planParts(plan *models.ModelPlan, v work) {
	several := slices.DeleteFunc(slices.Clone(r.Devices), func(d models.ModelDevice) bool { return d.Single })
	if n := len(r.Devices) - len(several); n > 0 {
		plan.Say(models.Say("%d devices are MIG instances or limited by MPS, which serve models on one device only.", int64(n)))
	}
	stages, devices := v.choose(several, r.Fewest)
	if stages == nil {
		plan.Say(v.missing(several, r.Fewest))
		return
	}
	if r.All {
		stages = v.useAll(stages, devices)
	}
	plan.Possible, plan.Parts = true, v.parts(stages, devices)
	for _, p := range plan.Parts {
		plan.Seconds = max(plan.Seconds, p.Seconds)
	}
	if r.Fewest {
		plan.Say(models.Say("Fewer devices of one machine do not have enough memory for this split."))
	}
	plan.Say(models.Say("It is divided so that the slowest part takes the least time."))
}

// missing is why items cannot be divided, also not among the same shares of devices of one machine.
func (v work) missing(devices []models.ModelDevice, fewest bool) models.Text {
	needed, available, most := int64(0), int64(0), int64(0)
	for _, item := range v.items {
		needed = sum(needed, item.Bytes)
	}
	for _, machine := range machinesOf(devices) {
		for n, d := range machine[:min(len(machine), MaxDevices)] {
			most = max(most, product(int64(n+1), max(usable(d.MemoryBytes)-v.fixed(), 0)))
		}
	}
	for _, d := range devices {
		available = sum(available, max(usable(d.MemoryBytes)-v.fixed(), 0))
	}
	switch {
	case fewest && needed > most:
		return models.Say("No machine has GPUs with enough memory, each with the same share: the parts share %s, "+
			"and at most %s remain on one machine where each has the %s of every part.",
			models.FormatBytes(needed), models.FormatBytes(most), models.FormatBytes(v.fixed()))
	case needed > available:
		return models.Say("The devices do not have enough memory: the parts share %s, and %s remain where each has the %s of every part.",
			models.FormatBytes(needed), models.FormatBytes(available), models.FormatBytes(v.fixed()))
	}
	return models.Say("The devices have enough memory together, and no division fits on each of them.")
}
