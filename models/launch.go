package models

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxIdleMinutes is the maximum of the limits for idle workspaces, a year.
const MaxIdleMinutes = 365 * 24 * 60

// KernelIdleMinutes is the platform's default of the time for which a GPU kernel keeps its GPU
// without work.
const KernelIdleMinutes = 5

// LaunchNumber is a numeric launch parameter: its name and where its value is.
type LaunchNumber struct {
	Name  string
	Value **int64
}

// Numbers are the numeric launch parameters.
func (l *LaunchParameters) Numbers() []LaunchNumber {
	return []LaunchNumber{{"gpus", &l.GPUs}, {"cores", &l.Cores}, {"gpu_memory_mib", &l.GPUMemoryMiB}, {"cpu_milli", &l.CPUMilli},
		{"memory_mib", &l.MemoryMiB}, {"shm_mib", &l.ShmMiB}, {"idle_minutes", &l.IdleMinutes}, {"gpu_idle_minutes", &l.GPUIdleMinutes},
		{"kernel_idle_minutes", &l.KernelIdleMinutes}}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// Check adds a problem for every invalid value; prefix is the name of the field
// that contains the parameters, or empty.
func (l LaunchParameters) Check(prefix string, p *Problems) {
	if prefix != "" {
		prefix += "."
	}
	for _, n := range l.Numbers() {
		value := *n.Value
		if value == nil {
			continue
		}
		checkAmount(prefix+n.Name, *value, p)
		if strings.HasSuffix(n.Name, "_minutes") && *value > MaxIdleMinutes {
			p.Add(prefix+n.Name, "must be at most %d minutes, a year; 0 is never", MaxIdleMinutes)
		}
	}
	if l.GPUs != nil && *l.GPUs > 1024 {
		p.Add(prefix+"gpus", "must be at most %d", 1024)
	}
	if l.Cores != nil && *l.Cores > 100 {
		p.Add(prefix+"cores", "must be at most %d; a whole GPU is 100 cores", 100)
	}
	if l.GPUModel != nil {
		CheckText(prefix+"gpu_model", *l.GPUModel, 100, p)
	}
	if l.Path != nil && *l.Path != "" && (!isLocalPath(*l.Path) || len(*l.Path) > 500) {
		p.Add(prefix+"path", "must start with a single /, be percent-encoded and have at most %d characters", 500)
	} else if l.Path != nil {
		checkVisible(prefix+"path", *l.Path, p)
	}
	l.checkEnv(prefix, p)
}

func (l LaunchParameters) checkEnv(prefix string, p *Problems) {
	if len(l.Env) > 100 {
		p.Add(prefix+"env", "must have at most %d variables", 100)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		value := l.Env[name]
		switch {
		case !envName.MatchString(name):
			p.Add(prefix+"env", "%q is not a valid variable name; use only letters, digits and _", name)
		case reservedEnv(name):
			p.Add(prefix+"env", "%s is reserved by Weir", name)
		case len(value) > 4096 || strings.ContainsAny(value, "\x00\r\n"):
			p.Add(prefix+"env", "the value of %s must be a single line of at most %d characters", name, 4096)
		}
	}
}

// reservedEnv reports whether isolation, identity or the share of a GPU depends
// on a variable.
func reservedEnv(name string) bool {
	prefixes := []string{"WEIR_", "NVIDIA_", "CUDA_VISIBLE", "CUDA_MPS_", "CUDA_DEVICE", "JUPYTER_TOKEN", "JUPYTERHUB_", "LD_", "NB_PREFIX"}
	return name == "HOME" || name == "PATH" || name == "USER" ||
		slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// ParseEnv reads environment variables, one NAME=VALUE a line; empty lines
// are skipped. A line without = is a problem of field.
func ParseEnv(field, text string, p *Problems) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			p.Add(field, "each line must be NAME=VALUE")
			return nil
		}
		env[strings.TrimSpace(name)] = value
	}
	if len(env) == 0 {
		return nil
	}
	return env
}

// FormatEnv is the inverse of ParseEnv, with sorted names.
func FormatEnv(env map[string]string) string {
	lines := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines = append(lines, name+"="+env[name])
	}
	return strings.Join(lines, "\n")
}
