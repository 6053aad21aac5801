package models

// ModelNeeds is what a model needs of the environment that it is used in.
type ModelNeeds struct {
	Environment        string  `json:"environment,omitempty" yaml:"environment,omitempty" maxLength:"100" doc:"name of an environment; absent: any that satisfies the rest"`
	VersionConstraints string  `json:"version_constraints,omitempty" yaml:"version_constraints,omitempty" maxLength:"1000" doc:"version constraints, such as python>=3.11, torch"`
	Minimum            Minimum `json:"minimum,omitempty" yaml:"minimum,omitempty" doc:"minimum resources"`
}

// Check adds a problem for every invalid value. The form of version constraints is
// checked by who matches them.
func (n *ModelNeeds) Check(p *Problems) {
	n.Environment = CheckText("environment", n.Environment, 100, p)
	n.VersionConstraints = CheckText("version_constraints", n.VersionConstraints, 1000, p)
	m := n.Minimum
	needed := LaunchParameters{GPUs: &m.GPUs, Cores: &m.Cores, GPUMemoryMiB: &m.GPUMemoryMiB, CPUMilli: &m.CPUMilli, MemoryMiB: &m.MemoryMiB}
	needed.Check("minimum", p)
}

// Max is the greater of each amount.
func (m Minimum) Max(o Minimum) Minimum {
	return Minimum{max(m.GPUs, o.GPUs), max(m.Cores, o.Cores), max(m.GPUMemoryMiB, o.GPUMemoryMiB),
		max(m.CPUMilli, o.CPUMilli), max(m.MemoryMiB, o.MemoryMiB)}
}
