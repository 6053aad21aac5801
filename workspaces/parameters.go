package workspaces

import (
	"maps"
	"slices"
	"strconv"

	"weir/models"
)

// Layers are the sources of launch parameters, in ascending precedence. The
// role's limit lowers values that the member did not request; requested values
// above it are errors.
type Layers struct {
	Platform    models.LaunchParameters
	Project     models.LaunchParameters
	Environment models.LaunchParameters
	Minimum     models.Minimum // the environment's
	DefaultPath string         // the environment's
	Limit       models.Resources
	Remaining   models.Resources // of the limit and the quota; only defaults of the platform depend on it
	Request     models.LaunchParameters
}

// Origins of a launch parameter.
const (
	OriginPlatform    = "platform"
	OriginProject     = "project"
	OriginEnvironment = "environment"
	OriginRole        = "role"
	OriginMember      = "member"
)

// Target is the target launch parameters of a workspace, each with its origin,
// and the demand that they imply.
type Target struct {
	Demand     models.Demand
	Parameters []models.Parameter
}

// Defaults of the platform.
const (
	defaultCPUMilli  = 1000
	defaultMemoryMiB = 2048
	defaultShmMiB    = 64
)

// The least that a workspace can have.
const (
	minCPUMilli  = 10
	minMemoryMiB = 64
)

// number is a numeric parameter while the layers are merged.
type number struct {
	name   string
	value  int64
	origin string
}

func (n *number) override(value *int64, origin string) {
	if value != nil {
		n.value, n.origin = *value, origin
	}
}

// atLeast raises a value that the member did not request to the environment's
// minimum.
func (n *number) atLeast(minimum int64) {
	if n.origin != OriginMember && n.value < minimum {
		n.value, n.origin = minimum, OriginEnvironment
	}
}

// atMost lowers a value that the member did not request to the role's limit.
func (n *number) atMost(limit int64) {
	if n.origin != OriginMember && n.value > limit {
		n.value, n.origin = limit, OriginRole
	}
}

// leaveRoom lowers a default of the platform to a part of the role's limit, and to what remains of it
// and of the quota, unless that is less than a quarter: then it is refused with what is in use.
func (n *number) leaveRoom(part, remaining int64) {
	if n.origin != OriginPlatform {
		return
	}
	room := min(part, n.value)
	if remaining >= room/4 {
		room = min(room, remaining)
	}
	if room < n.value {
		n.value, n.origin = room, OriginRole
	}
}

// numbers are the numeric parameters, in the order of [models.LaunchParameters.Numbers].
type numbers struct{ gpus, cores, gpuMemory, cpu, memory, shm, idle, gpuIdle, kernelIdle number }

func (n *numbers) all() []*number {
	return []*number{&n.gpus, &n.cores, &n.gpuMemory, &n.cpu, &n.memory, &n.shm, &n.idle, &n.gpuIdle, &n.kernelIdle}
}

// defaultNumbers are the values that no layer sets.
func defaultNumbers() (n numbers) {
	for i, x := range new(models.LaunchParameters).Numbers() {
		*n.all()[i] = number{name: x.Name, origin: OriginPlatform}
	}
	n.cpu.value, n.memory.value, n.shm.value = defaultCPUMilli, defaultMemoryMiB, defaultShmMiB
	return n
}

// MergeParameters merges the layers into target launch parameters. Values below
// the environment's minimum or above the role's limit are errors of kind
// invalid that name the field.
func MergeParameters(l Layers) (Target, error) {
	n := defaultNumbers()
	model, path := models.Parameter{Name: "gpu_model", Origin: OriginPlatform}, models.Parameter{Name: "path", Value: l.DefaultPath,
		Origin: OriginEnvironment}
	env := map[string]models.Parameter{}
	var given numbers // without the member's request
	for _, layer := range []struct {
		models.LaunchParameters
		origin string
	}{{l.Platform, OriginPlatform}, {l.Project, OriginProject}, {l.Environment, OriginEnvironment}, {l.Request, OriginMember}} {
		if layer.origin == OriginMember {
			given = n
		}
		for i, x := range layer.Numbers() {
			n.all()[i].override(*x.Value, layer.origin)
		}
		overrideText(&model, layer.GPUModel, layer.origin)
		overrideText(&path, layer.Path, layer.origin)
		for name, value := range layer.Env {
			env[name] = models.Parameter{Name: "env." + name, Value: value, Origin: layer.origin}
		}
	}
	n.bound(l)
	t := Target{Demand: models.Demand{GPUs: n.gpus.value, Cores: n.cores.value, GPUMemoryMiB: n.gpuMemory.value, GPUModel: model.Value,
		CPUMilli: n.cpu.value, MemoryMiB: n.memory.value}}
	for _, x := range n.all() {
		t.Parameters = append(t.Parameters, models.Parameter{Name: x.name, Value: strconv.FormatInt(x.value, 10), Origin: x.origin})
	}
	t.Parameters = append(t.Parameters, model, path)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		t.Parameters = append(t.Parameters, env[name])
	}
	return t, n.check(t.Demand, l, given)
}

func overrideText(p *models.Parameter, value *string, origin string) {
	if value != nil && *value != "" {
		p.Value, p.Origin = *value, origin
	}
}

// bound makes the GPU parameters consistent, and moves what the member did not
// request between the environment's minimum and the role's limit.
func (n *numbers) bound(l Layers) {
	n.gpus.atLeast(l.Minimum.GPUs)
	if n.cores.value > 0 && n.gpus.value == 0 && n.gpus.origin != OriginMember {
		n.gpus.value, n.gpus.origin = 1, n.cores.origin
	}
	n.gpus.atMost(l.Limit.GPUCores) // each has at least one core
	if n.gpus.value == 0 {
		n.cores.override(&n.gpus.value, n.gpus.origin)
		n.gpuMemory.override(&n.gpus.value, n.gpus.origin)
	} else {
		if n.cores.value == 0 && n.cores.origin != OriginMember {
			n.cores.value, n.cores.origin = 100, OriginPlatform
		}
		n.cores.atLeast(l.Minimum.Cores)
		n.gpuMemory.atLeast(l.Minimum.GPUMemoryMiB)
		if !n.gpusAlone() {
			n.cores.atMost(l.Limit.GPUCores / n.gpus.value)
		}
		n.gpuMemory.atMost(l.Limit.GPUMemoryMiB / n.gpus.value)
	}
	cores := n.gpus.value * n.cores.value
	n.cpu.leaveRoom(max(minCPUMilli, part(l.Limit.CPUMilli, cores, l.Limit.GPUCores)), l.Remaining.CPUMilli)
	n.memory.leaveRoom(max(minMemoryMiB, part(l.Limit.MemoryMiB, cores, l.Limit.GPUCores)), l.Remaining.MemoryMiB)
	n.cpu.atLeast(l.Minimum.CPUMilli)
	n.memory.atLeast(l.Minimum.MemoryMiB)
	n.cpu.atMost(l.Limit.CPUMilli)
	n.memory.atMost(l.Limit.MemoryMiB)
	if n.shm.origin != OriginMember && n.shm.value > n.memory.value {
		n.shm.override(&n.memory.value, n.memory.origin)
	}
}

// gpusAlone reports whether the member wants GPUs and says nothing of their cores: these are as
// many as by default then, or the launch is refused.
func (n *numbers) gpusAlone() bool {
	return n.gpus.origin == OriginMember && n.cores.origin != OriginMember
}

// part is what a launch of some GPU cores takes by default of a limit at most: as much of it as of
// the limit on GPU cores, and half of it at least, so that something else can be launched.
func part(limit, cores, limitCores int64) int64 {
	if models.IsUnlimited(limit) || models.IsUnlimited(limitCores) || limitCores == 0 {
		return limit / 2
	}
	return max(limit/2, limit*min(cores, limitCores)/limitCores)
}

func (n *numbers) check(demand models.Demand, l Layers, given numbers) error {
	var p models.Problems
	if n.gpus.value > 0 && (n.cores.value < 1 || n.cores.value > 100) {
		p.Add("cores", "must be between 1 and 100 per GPU")
	}
	for i, minimum := range []int64{l.Minimum.GPUs, l.Minimum.Cores, l.Minimum.GPUMemoryMiB, l.Minimum.CPUMilli, l.Minimum.MemoryMiB} {
		x := n.all()[i]
		completed := x == &n.gpuMemory && x.value == 0 // by the pool, later
		if x.value < minimum && !completed {
			p.Add(x.name, "must be at least %s for this environment; has %s", models.Quantity(x.name, minimum), models.Quantity(x.name, x.value))
		}
	}
	if n.cpu.value < minCPUMilli {
		p.Add("cpu_milli", "must be at least %s CPU cores", models.Quantity("cpu_milli", minCPUMilli))
	}
	if n.memory.value < minMemoryMiB {
		p.Add("memory_mib", "must be at least %d MiB", minMemoryMiB)
	}
	if n.shm.value > n.memory.value {
		p.Add("shm_mib", "must not exceed the memory, %s", models.FormatMiB(n.memory.value))
	}
	for _, x := range [][2]number{{n.idle, given.idle}, {n.gpuIdle, given.gpuIdle}, {n.kernelIdle, given.kernelIdle}} {
		if asked, most := x[0].value, x[1].value; most > 0 && (asked == 0 || asked > most) {
			p.Add(x[0].name, "must be from 1 to %d minutes: you can only shorten this limit", most)
		}
	}
	for _, x := range demand.Resources().Exceeding(l.Limit) {
		field := demandField(x.Name)
		if field == "cores" && n.gpus.value > 1 && n.gpusAlone() {
			field = "gpus"
		}
		p.Add(field, "%s requested; your role's limit is %s", models.Quantity(x.Name, x.Value), models.Quantity(x.Name, x.Limit))
	}
	return p.Err()
}

// demandField returns the launch parameter that determines a resource.
func demandField(resource string) string {
	if resource == "gpu_cores" {
		return "cores"
	}
	return resource
}

// setDemand replaces the demand by one that was completed or lowered after the
// merge. The origin of values that differ becomes the platform.
func (t *Target) setDemand(d models.Demand) {
	t.Demand = d
	changed := map[string]int64{"cores": d.Cores, "gpu_memory_mib": d.GPUMemoryMiB}
	for i, p := range t.Parameters {
		value, ok := changed[p.Name]
		if s := strconv.FormatInt(value, 10); ok && s != p.Value {
			t.Parameters[i].Value, t.Parameters[i].Origin = s, OriginPlatform
		}
	}
}

// parameter returns the value of a target launch parameter, or "".
func parameter(target []models.Parameter, name string) string {
	i := slices.IndexFunc(target, func(p models.Parameter) bool { return p.Name == name })
	if i < 0 {
		return ""
	}
	return target[i].Value
}
