package workspaces_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/workspaces"
)

func layers(raw string) (l workspaces.Layers) {
	l.Limit = models.Resources{GPUCores: 200, GPUMemoryMiB: 80_000, CPUMilli: 4000, MemoryMiB: 8192}
	if err := json.Unmarshal([]byte(raw), &l); err != nil {
		panic(err)
	}
	return l
}

// describe writes the numbers of a target as "value origin".
func describe(t workspaces.Target) map[string]string {
	out := map[string]string{}
	for _, p := range t.Parameters {
		out[p.Name] = strings.TrimSpace(p.Value + " " + p.Origin)
	}
	return out
}

func TestMergeParameters(t *testing.T) {
	for _, c := range []struct{ name, layers, want string }{
		{"nothing", `{}`, "gpus: 0 platform, cores: 0 platform, cpu_milli: 1000 platform, memory_mib: 2048 platform, shm_mib: 64 platform, path: environment"},
		{"each layer over the one before", `{"Project":{"cpu_milli":100,"memory_mib":100,"shm_mib":1,"path":"/p"},"Environment":{"cpu_milli":200,"memory_mib":200},"Request":{"cpu_milli":300}}`,
			"cpu_milli: 300 member, memory_mib: 200 environment, shm_mib: 1 project, path: /p project"},
		{"cores alone are of one GPU", `{"Request":{"cores":30}}`, "gpus: 1 member, cores: 30 member"},
		{"GPUs alone are whole", `{"Request":{"gpus":2}}`, "gpus: 2 member, cores: 100 platform"},
		{"no GPU, whatever the others say", `{"Project":{"gpus":1,"cores":50,"gpu_memory_mib":9},"Request":{"gpus":0}}`, "gpus: 0 member, cores: 0 member, gpu_memory_mib: 0 member"},
		{"the role caps what was not asked", `{"Project":{"gpus":4,"cores":100,"gpu_memory_mib":80000,"cpu_milli":9000,"memory_mib":99999,"shm_mib":99999}}`,
			"gpus: 4 project, cores: 50 role, gpu_memory_mib: 20000 role, cpu_milli: 4000 role, memory_mib: 8192 role, shm_mib: 8192 role"},
		{"a default leaves room for another workspace", `{"Limit":{"gpu_cores":100,"cpu_milli":1000,"memory_mib":3000}}`, "cpu_milli: 500 role, memory_mib: 1500 role"},
		{"unless its GPUs are more of the limit", `{"Limit":{"gpu_cores":100,"cpu_milli":1000,"memory_mib":2000},"Request":{"gpus":1,"cores":80}}`, "cpu_milli: 800 role, memory_mib: 1600 role"},
		{"a default takes what remains", `{"Limit":{"gpu_cores":100,"cpu_milli":1000,"memory_mib":3000},"Remaining":{"cpu_milli":300,"memory_mib":1000},"Request":{"gpus":1,"cores":80}}`, "cpu_milli: 300 role, memory_mib: 1000 role"},
		{"if that is not too little", `{"Limit":{"gpu_cores":100,"cpu_milli":1000,"memory_mib":3000},"Remaining":{"cpu_milli":199,"memory_mib":0},"Request":{"gpus":1,"cores":80}}`, "cpu_milli: 800 role, memory_mib: 2048 platform"},
		{"what was asked for does not", `{"Limit":{"gpu_cores":100,"cpu_milli":1000,"memory_mib":3000},"Project":{"memory_mib":3000},"Request":{"cpu_milli":900}}`, "cpu_milli: 900 member, memory_mib: 3000 project"},
		{"a role without GPUs", `{"Limit":{"GPUCores":0,"gpu_cores":0,"cpu_milli":1000,"memory_mib":4096},"Project":{"gpus":1,"cores":50}}`, "gpus: 0 role, cores: 0 role"},
		{"the environment's minimum", `{"Minimum":{"gpus":1,"cores":20,"gpu_memory_mib":5,"cpu_milli":2000,"memory_mib":4096},"Project":{"cpu_milli":1,"memory_mib":1,"gpus":1,"cores":1}}`,
			"gpus: 1 project, cores: 20 environment, gpu_memory_mib: 5 environment, cpu_milli: 2000 environment, memory_mib: 4096 environment"},
		{"variables of all layers", `{"Project":{"env":{"A":"p","B":"p"}},"Environment":{"env":{"B":"e","C":"e"}},"Request":{"env":{"C":"m"}}}`, "env.A: p project, env.B: e environment, env.C: m member"},
		{"an empty text leaves the one before", `{"DefaultPath":"/tree","Project":{"gpu_model":"H100"},"Request":{"path":"","gpu_model":""}}`, "path: /tree environment, gpu_model: H100 project"},
	} {
		target, err := workspaces.MergeParameters(layers(c.layers))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got := describe(target)
		for _, pair := range strings.Split(c.want, ", ") {
			if name, value, _ := strings.Cut(pair, ": "); got[name] != value {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got[name], value)
			}
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, c := range []struct{ layers, field string }{
		{`{"Request":{"gpus":1,"cores":0}}`, "cores"}, {`{"Request":{"gpus":1,"cores":101}}`, "cores"},
		{`{"Request":{"gpus":3,"cores":100}}`, "cores"}, {`{"Request":{"gpus":3}}`, "gpus"}, {`{"Limit":{"gpu_cores":50,"cpu_milli":1000,"memory_mib":4096},"Request":{"gpus":1}}`, "cores"}, {`{"Request":{"gpus":2,"cores":100,"gpu_memory_mib":40001}}`, "gpu_memory_mib"},
		{`{"Request":{"cpu_milli":4001}}`, "cpu_milli"}, {`{"Request":{"cpu_milli":9}}`, "cpu_milli"},
		{`{"Request":{"memory_mib":8193}}`, "memory_mib"}, {`{"Request":{"memory_mib":63}}`, "memory_mib"},
		{`{"Request":{"memory_mib":100,"shm_mib":101}}`, "shm_mib"},
		{`{"Minimum":{"gpus":1},"Request":{"gpus":0}}`, "gpus"}, {`{"Minimum":{"cpu_milli":500},"Request":{"cpu_milli":400}}`, "cpu_milli"},
		{`{"Minimum":{"gpus":1,"gpu_memory_mib":10},"Request":{"gpus":1,"gpu_memory_mib":9}}`, "gpu_memory_mib"},
		{`{"Minimum":{"memory_mib":9000}}`, "memory_mib"}, // the role caps it below the minimum
	} {
		_, err := workspaces.MergeParameters(layers(c.layers))
		var e *models.Error
		if !errors.As(err, &e) || e.Kind != models.KindInvalid || e.Fields[0].Name != c.field {
			t.Errorf("%s: %v, want %s", c.layers, err, c.field)
		}
	}
}

// holdsUp is what every merge must keep, whatever the layers say.
func holdsUp(t interface{ Errorf(string, ...any) }, l workspaces.Layers) {
	target, err := workspaces.MergeParameters(l)
	if err != nil {
		if models.KindOf(err) != models.KindInvalid {
			t.Errorf("%v", err)
		}
		return
	}
	d := target.Demand
	if over := d.Resources().Exceeding(l.Limit); len(over) > 0 {
		t.Errorf("above the limit: %+v of %+v", over, l)
	}
	if d.GPUs < l.Minimum.GPUs || d.CPUMilli < l.Minimum.CPUMilli || d.MemoryMiB < l.Minimum.MemoryMiB || d.GPUs > 0 && (d.Cores < max(l.Minimum.Cores, 1) || d.Cores > 100) {
		t.Errorf("below the minimum: %+v of %+v", d, l)
	}
	got := describe(target)
	for name, asked := range map[string]*int64{"gpus": l.Request.GPUs, "cpu_milli": l.Request.CPUMilli, "memory_mib": l.Request.MemoryMiB, "shm_mib": l.Request.ShmMiB} {
		if asked != nil && !strings.HasSuffix(got[name], " member") {
			t.Errorf("%s was asked by the member, but is %q", name, got[name])
		}
		if asked == nil && name != "gpus" && strings.HasSuffix(got[name], " member") && l.Request.MemoryMiB == nil {
			t.Errorf("%s was not asked by the member, but is %q", name, got[name])
		}
	}
}

func TestMergeProperty(t *testing.T) {
	optional := func(t *rapid.T, name string, most int64) *int64 {
		return rapid.Ptr(rapid.Int64Range(0, most), true).Draw(t, name)
	}
	layer := func(t *rapid.T, name string) models.LaunchParameters {
		return models.LaunchParameters{GPUs: optional(t, name+" gpus", 4), Cores: optional(t, name+" cores", 110), GPUMemoryMiB: optional(t, name+" gpu memory", 100),
			CPUMilli: optional(t, name+" cpu", 3000), MemoryMiB: optional(t, name+" memory", 3000), ShmMiB: optional(t, name+" shm", 3000)}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
		holdsUp(t, workspaces.Layers{Project: layer(t, "project"), Environment: layer(t, "environment"), Request: layer(t, "request"),
			Minimum: models.Minimum{GPUs: n("least gpus", 2), Cores: n("least cores", 50), GPUMemoryMiB: n("least gpu memory", 50), CPUMilli: n("least cpu", 2000), MemoryMiB: n("least memory", 2000)},
			Limit:   models.Resources{GPUCores: n("limit cores", 400), GPUMemoryMiB: n("limit gpu memory", 400), CPUMilli: n("limit cpu", 4000), MemoryMiB: n("limit memory", 4000)}})
	})
}

func FuzzMergeParameters(f *testing.F) {
	f.Add([]byte(`{"gpus":1}`), []byte(`{"cores":50}`), []byte(`{"env":{"A":"b"}}`), int64(100), int64(1000))
	f.Fuzz(func(t *testing.T, project, environment, request []byte, cores, others int64) {
		l := workspaces.Layers{Limit: models.Resources{GPUCores: cores, GPUMemoryMiB: others, CPUMilli: others, MemoryMiB: others}}
		var p models.Problems
		l.Limit.Input().Check("limit", &p)
		for to, raw := range map[*models.LaunchParameters][]byte{&l.Project: project, &l.Environment: environment, &l.Request: request} {
			if json.Unmarshal(raw, to) != nil {
				return
			}
			to.Check("", &p)
		}
		if len(p) == 0 {
			holdsUp(t, l)
		}
	})
}
