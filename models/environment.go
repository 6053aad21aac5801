package models

import (
	"maps"
	"strings"
	"time"
)

// Environment is a catalog entry: a notebook program, or a language alone, with the
// versions of the language, of frameworks and tools.
type Environment struct {
	ID              int64             `json:"id"`
	Name            string            `json:"name"`
	DiscoveredKey   *string           `json:"discovered_key"` // set for an environment that was found on this machine
	Language        string            `json:"language"`
	LanguageVersion string            `json:"language_version"`
	Versions        map[string]string `json:"versions" gorm:"serializer:json;not null"` // framework or tool → version
	Minimum         Minimum           `json:"minimum" gorm:"serializer:json"`
	Launch          LaunchParameters  `json:"launch" gorm:"serializer:json"`
	Image           string            `json:"image"`                                   // on Kubernetes
	Command         []string          `json:"command" gorm:"serializer:json;not null"` // on one machine
	DefaultPath     string            `json:"default_path"`
	NoNotebook      bool              `json:"no_notebook"` // for runs and deployments only
	Unavailable     Text              `json:"unavailable"` // reason; empty: available
	Version         int64             `json:"version"`
	CreatedAt       time.Time         `json:"created_at"`
}

// Unchecked reports whether only the command of an installation on this machine is known,
// because the check of it has run out of time. It can be used.
func (e Environment) Unchecked() bool {
	return e.DiscoveredKey != nil && e.Unavailable.Empty() && e.LanguageVersion == ""
}

// With returns the environment with a version of a tool, unless that is empty.
func (e Environment) With(tool, version string) Environment {
	if version != "" {
		versions := map[string]string{tool: version}
		maps.Copy(versions, e.Versions)
		e.Versions = versions
	}
	return e
}

// VersionOf returns the version of the language, a framework or a tool; "" is none.
func (e Environment) VersionOf(name string) string {
	if strings.EqualFold(name, e.Language) {
		return e.LanguageVersion
	}
	for tool, version := range e.Versions {
		if strings.EqualFold(tool, name) {
			return version
		}
	}
	return ""
}

// Minimum is what an environment needs at least.
type Minimum struct {
	GPUs         int64 `json:"gpus,omitempty" yaml:"gpus,omitempty" minimum:"0" doc:"number of GPUs"`
	Cores        int64 `json:"cores,omitempty" yaml:"cores,omitempty" minimum:"0" doc:"GPU cores per GPU"`
	GPUMemoryMiB int64 `json:"gpu_memory_mib,omitempty" yaml:"gpu_memory_mib,omitempty" minimum:"0" doc:"GPU memory per GPU, MiB"`
	CPUMilli     int64 `json:"cpu_milli,omitempty" yaml:"cpu_milli,omitempty" minimum:"0" doc:"thousandths of a CPU core"`
	MemoryMiB    int64 `json:"memory_mib,omitempty" yaml:"memory_mib,omitempty" minimum:"0" doc:"memory, MiB"`
}
