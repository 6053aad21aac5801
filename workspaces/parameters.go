package workspaces

import (
	"sort"
	"strconv"

	"weir/models"
	"weir/pool/quota"
)

// Layers are the sources of launch parameters, weakest first. What a layer
// leaves open comes from the one before it; the role's limit caps what the
// member did not ask for, and refuses what the member did.
type Layers struct {
	Project     models.LaunchParameters
	Environment models.LaunchParameters
	Minimum     models.Minimum // the environment's
	DefaultPath string         // the environment's
	Limit       models.Resources
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

// Target is what a workspace is launched with, and where each value is from.
type Target struct {
	Demand     models.Demand
	ShmMiB     int64
	Path       string
	Env        map[string]string
	Parameters []models.Parameter
}

// Defaults of the platform.
const (
	defaultCPUMilli  = 1000
	defaultMemoryMiB = 2048
	defaultShmMiB    = 64
)

// number is one numeric parameter on its way through the layers.
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

// atLeast raises a value to what the environment needs, unless the member
// has chosen it.
func (n *number) atLeast(minimum int64) {
	if n.origin != OriginMember && n.value < minimum {
		n.value, n.origin = minimum, OriginEnvironment
	}
}

// atMost lowers a value to the role's limit, unless the member has chosen it.
func (n *number) atMost(limit int64) {
	if n.origin != OriginMember && n.value > limit {
		n.value, n.origin = limit, OriginRole
	}
}

// MergeParameters makes the target launch parameters of the layers. A request
// below the environment's minimum or above the role's limit is refused with
// the fields and figures named.
func MergeParameters(l Layers) (Target, error) {
	layers := []struct {
		parameters models.LaunchParameters
		origin     string
	}{{l.Project, OriginProject}, {l.Environment, OriginEnvironment}, {l.Request, OriginMember}}
	gpus, cores := number{name: "gpus", origin: OriginPlatform}, number{name: "cores", origin: OriginPlatform}
	gpuMemory := number{name: "gpu_memory_mib", origin: OriginPlatform}
	cpu := number{"cpu_milli", defaultCPUMilli, OriginPlatform}
	memory := number{"memory_mib", defaultMemoryMiB, OriginPlatform}
	shm := number{"shm_mib", defaultShmMiB, OriginPlatform}
	model, path := models.Parameter{Name: "gpu_model", Origin: OriginPlatform}, models.Parameter{Name: "path", Value: l.DefaultPath, Origin: OriginEnvironment}
	env := map[string]models.Parameter{}
	for _, layer := range layers {
		p := layer.parameters
		gpus.override(p.GPUs, layer.origin)
		cores.override(p.Cores, layer.origin)
		gpuMemory.override(p.GPUMemoryMiB, layer.origin)
		cpu.override(p.CPUMilli, layer.origin)
		memory.override(p.MemoryMiB, layer.origin)
		shm.override(p.ShmMiB, layer.origin)
		overrideText(&model, p.GPUModel, layer.origin)
		overrideText(&path, p.Path, layer.origin)
		for name, value := range p.Env {
			env[name] = models.Parameter{Name: "env." + name, Value: value, Origin: layer.origin}
		}
	}
	numbers := []*number{&gpus, &cores, &gpuMemory, &cpu, &memory, &shm}
	bound(numbers, l)
	if err := checkNumbers(numbers, l); err != nil {
		return Target{}, err
	}
	return newTarget(numbers, model, path, env), nil
}

func overrideText(p *models.Parameter, value *string, origin string) {
	if value != nil && *value != "" {
		p.Value, p.Origin = *value, origin
	}
}

// bound makes the GPU numbers agree with each other and keeps what the member
// did not choose between the environment's minimum and the role's limit.
func bound(n []*number, l Layers) {
	gpus, cores, gpuMemory, cpu, memory, shm := n[0], n[1], n[2], n[3], n[4], n[5]
	gpus.atLeast(l.Minimum.GPUs)
	if cores.value > 0 && gpus.value == 0 && gpus.origin != OriginMember {
		gpus.value, gpus.origin = 1, cores.origin
	}
	gpus.atMost(l.Limit.GPUCores) // each takes a core at least
	if gpus.value == 0 {
		*cores, *gpuMemory = number{"cores", 0, gpus.origin}, number{"gpu_memory_mib", 0, gpus.origin}
	} else {
		if cores.value == 0 && cores.origin != OriginMember {
			cores.value, cores.origin = 100, OriginPlatform
		}
		cores.atLeast(l.Minimum.Cores)
		gpuMemory.atLeast(l.Minimum.GPUMemoryMiB)
		cores.atMost(l.Limit.GPUCores / gpus.value)
		gpuMemory.atMost(l.Limit.GPUMemoryMiB / gpus.value)
	}
	cpu.atLeast(l.Minimum.CPUMilli)
	memory.atLeast(l.Minimum.MemoryMiB)
	cpu.atMost(l.Limit.CPUMilli)
	memory.atMost(l.Limit.MemoryMiB)
	if shm.origin != OriginMember && shm.value > memory.value {
		shm.value, shm.origin = memory.value, memory.origin
	}
}

func checkNumbers(n []*number, l Layers) error {
	gpus, cores, gpuMemory, cpu, memory, shm := n[0], n[1], n[2], n[3], n[4], n[5]
	var p models.Problems
	if gpus.value > 0 && (cores.value < 1 || cores.value > 100) {
		p.Add("cores", "must be between 1 and 100 per GPU")
	}
	least := []struct {
		*number
		minimum int64
	}{{gpus, l.Minimum.GPUs}, {cores, l.Minimum.Cores}, {cpu, l.Minimum.CPUMilli}, {memory, l.Minimum.MemoryMiB}}
	if gpuMemory.value > 0 {
		least = append(least, struct {
			*number
			minimum int64
		}{gpuMemory, l.Minimum.GPUMemoryMiB})
	}
	for _, x := range least {
		if x.value < x.minimum {
			p.Add(x.name, "must be at least %s for this environment; has %s", quantity(x.name, x.minimum), quantity(x.name, x.value))
		}
	}
	if cpu.value < 10 {
		p.Add("cpu_milli", "must be at least %d millicores", 10)
	}
	if memory.value < 64 {
		p.Add("memory_mib", "must be at least %d MiB", 64)
	}
	if shm.value > memory.value {
		p.Add("shm_mib", "must not exceed the memory, %s", models.FormatMiB(memory.value))
	}
	demand := models.Demand{GPUs: gpus.value, Cores: cores.value, GPUMemoryMiB: gpuMemory.value, CPUMilli: cpu.value, MemoryMiB: memory.value}
	for _, x := range quota.Exceeded(demand.Resources(), l.Limit) {
		p.Add(demandField(x.Name), "%s requested; your role's limit is %s", models.Quantity(x.Name, x.Value), models.Quantity(x.Name, x.Limit))
	}
	return p.Err()
}

// demandField names the input that governs a resource of the vector.
func demandField(resource string) string {
	if resource == "gpu_cores" {
		return "cores"
	}
	return resource
}

func quantity(name string, value int64) string {
	if name == "gpus" || name == "cores" {
		return strconv.FormatInt(value, 10)
	}
	return models.Quantity(name, value)
}

func newTarget(n []*number, model, path models.Parameter, env map[string]models.Parameter) Target {
	t := Target{ShmMiB: n[5].value, Path: path.Value, Env: map[string]string{},
		Demand: models.Demand{GPUs: n[0].value, Cores: n[1].value, GPUMemoryMiB: n[2].value, GPUModel: model.Value, CPUMilli: n[3].value, MemoryMiB: n[4].value}}
	for _, x := range n {
		t.Parameters = append(t.Parameters, models.Parameter{Name: x.name, Value: strconv.FormatInt(x.value, 10), Origin: x.origin})
	}
	t.Parameters = append(t.Parameters, model, path)
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Env[name] = env[name].Value
		t.Parameters = append(t.Parameters, env[name])
	}
	return t
}

// setDemand writes a demand that was completed or lowered after the merge back
// into the parameters; the platform is where such a value is from.
func (t *Target) setDemand(d models.Demand) {
	t.Demand = d
	for i, p := range t.Parameters {
		var value int64
		switch p.Name {
		case "cores":
			value = d.Cores
		case "gpu_memory_mib":
			value = d.GPUMemoryMiB
		default:
			continue
		}
		if s := strconv.FormatInt(value, 10); s != p.Value {
			t.Parameters[i].Value, t.Parameters[i].Origin = s, OriginPlatform
		}
	}
}
