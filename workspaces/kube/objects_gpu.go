package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

// resourceCores is the extended resource for hundredths of a node's GPUs.
const resourceCores = "weir.dev/gpu-cores"

// gpuObjects are the parts of a pod for its GPU shares.
type gpuObjects struct {
	resources    corev1.ResourceList
	env          map[string]string
	annotations  map[string]string
	runtimeClass string
	mounts       []*core.VolumeMountApplyConfiguration
	volumes      []*core.VolumeApplyConfiguration
	limits       []models.Limit
}

// gpuPart returns the parts of a pod that give it its shares, for the configured
// back end.
func (c Config) gpuPart(spec runtime.Spec) (gpuObjects, error) {
	p := gpuObjects{env: runtime.GPUEnvironment(spec.GPUs), limits: runtime.GPULimits(spec.GPUs, c.gpuLimit)}
	if len(spec.GPUs) == 0 {
		return p, nil
	}
	if c.GPUBackend != BackendWeir { // the other back ends set the devices
		maps.DeleteFunc(p.env, func(name, _ string) bool { return !strings.HasPrefix(name, "WEIR_") })
	}
	switch c.GPUBackend {
	case BackendHAMi:
		p.resources = hamiResources(spec.GPUs)
		p.annotations = map[string]string{"nvidia.com/use-gpuuuid": runtime.JoinGPUs(spec.GPUs, func(g runtime.GPU) string { return g.UUID })}
		return p, nil
	case BackendNVIDIA:
		if part := slices.IndexFunc(spec.GPUs, func(g runtime.GPU) bool { return g.Enforcement != models.EnforcedExclusive }); part >= 0 {
			return p, models.Conflict("This cluster allocates whole GPUs only; %d GPU cores were requested.", spec.GPUs[part].Cores)
		}
		p.resources = corev1.ResourceList{"nvidia.com/gpu": quantityOf(int64(len(spec.GPUs)))}
		return p, nil
	}
	var cores int64
	for _, g := range spec.GPUs {
		cores += g.Cores
	}
	p.resources = corev1.ResourceList{resourceCores: quantityOf(cores)}
	if slices.ContainsFunc(spec.GPUs, func(g runtime.GPU) bool { return !g.Simulated }) {
		p.runtimeClass = c.RuntimeClass
	}
	return p, c.addMPS(&p, spec.GPUs)
}

// hamiResources returns the resource limits of a container for shares on a cluster
// with HAMi: nvidia.com/gpu is their number, and nvidia.com/gpucores (percent) and
// nvidia.com/gpumem (MiB) are of each, not of all together
// (kueue.sigs.k8s.io/docs/tasks/run/using_hami; Project-HAMi/HAMi issue 302).
// Because one value applies to every GPU, it is the minimum of unequal shares.
// Without nvidia.com/gpumem, HAMi assigns the whole memory.
func hamiResources(gpus []runtime.GPU) corev1.ResourceList {
	cores, memory := gpus[0].Cores, gpus[0].MemoryMiB
	for _, g := range gpus[1:] {
		cores, memory = min(cores, g.Cores), min(memory, g.MemoryMiB)
	}
	resources := corev1.ResourceList{"nvidia.com/gpu": quantityOf(int64(len(gpus))), "nvidia.com/gpucores": quantityOf(cores)}
	if memory > 0 {
		resources["nvidia.com/gpumem"] = quantityOf(memory)
	}
	return resources
}

// servedByMPS reports whether the pod of a share needs an MPS daemon.
func (c Config) servedByMPS(g runtime.GPU) bool {
	return c.GPUBackend == BackendWeir && g.ServedByMPS()
}

// addMPS mounts the pipes of the daemons that serve the shares. A daemon and its
// clients must share /dev/shm, so that of the first daemon replaces the
// workspace's own. The volume is mounted through a claim, because Pod Security
// "restricted" forbids host paths.
func (c Config) addMPS(p *gpuObjects, gpus []runtime.GPU) error {
	for i, g := range gpus {
		if !c.servedByMPS(g) {
			continue
		}
		if c.MPSDir == "" {
			return models.Conflict("MPS serves the GPU %s, and kube-mps-dir is not set.", g.UUID)
		}
		if g.UUID == "" || strings.ContainsAny(g.UUID, "/.") {
			return fmt.Errorf("%q is not the UUID of a GPU", g.UUID)
		}
		if len(p.volumes) == 0 {
			p.mounts = append(p.mounts, core.VolumeMount().WithName(claimMPS).WithMountPath("/dev/shm").WithSubPath(g.UUID+"/shm"))
			p.volumes = append(p.volumes, claimVolume(claimMPS, claimMPS, false))
		}
		p.mounts = append(p.mounts, core.VolumeMount().WithName(claimMPS).WithMountPath(runtime.MPSPipe(i)).WithSubPath(g.UUID+"/pipe"))
	}
	return nil
}

// gpuLimit returns whether and how this configuration makes the cluster enforce a
// share.
func (c Config) gpuLimit(g runtime.GPU) (enforced bool, how models.Text) {
	switch {
	case g.Simulated:
		return g.Isolation()
	case c.GPUBackend == BackendHAMi:
		return false, models.Say("HAMi limits only programs that keep its preloaded library")
	case c.GPUBackend == BackendNVIDIA:
		return true, models.Say("the whole device; the cluster does not share it")
	case c.RuntimeClass == "":
		return false, models.Say("this cluster is not configured to isolate a single device")
	}
	return g.Isolation()
}
