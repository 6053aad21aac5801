package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"weir/models"
	"weir/workspaces"
)

// resourceCores counts hundredths of a node's GPUs.
const resourceCores = "weir.dev/gpu-cores"

// gpuObjects is what a pod has for the sake of its GPU shares.
type gpuObjects struct {
	resources    corev1.ResourceList
	env          map[string]string
	annotations  map[string]string
	runtimeClass string
	mounts       []*core.VolumeMountApplyConfiguration
	volumes      []*core.VolumeApplyConfiguration
	limits       []models.Limit
}

// gpuPart decides how a pod gets its shares, by the configured back end.
func (c Config) gpuPart(spec workspaces.Spec) (gpuObjects, error) {
	p := gpuObjects{env: workspaces.GPUEnvironment(spec.GPUs), limits: c.gpuLimits(spec.GPUs)}
	if len(spec.GPUs) == 0 {
		return p, nil
	}
	if c.GPUBackend != BackendWeir {
		// These back ends set the devices themselves.
		maps.DeleteFunc(p.env, func(name, _ string) bool { return !strings.HasPrefix(name, "WEIR_") })
		resources, err := c.clusterResources(spec.GPUs)
		p.resources = resources
		if c.GPUBackend == BackendHAMi {
			p.annotations = map[string]string{"nvidia.com/use-gpuuuid": uuids(spec.GPUs)}
		}
		return p, err
	}
	var cores int64
	for _, g := range spec.GPUs {
		cores += g.Cores
	}
	p.resources = corev1.ResourceList{resourceCores: quantityOf(cores)}
	if slices.ContainsFunc(spec.GPUs, func(g workspaces.GPU) bool { return !g.Simulated }) {
		p.runtimeClass = c.RuntimeClass
	}
	return p, c.addMPS(&p, spec.GPUs)
}

// clusterResources asks a back end that knows the cluster's GPUs itself.
func (c Config) clusterResources(gpus []workspaces.GPU) (corev1.ResourceList, error) {
	wanted := map[string]int64{"nvidia.com/gpu": int64(len(gpus))}
	if c.GPUBackend == BackendHAMi {
		wanted = workspaces.HAMiResources(gpus)
	} else if part := slices.IndexFunc(gpus, func(g workspaces.GPU) bool { return g.Enforcement != models.EnforcedExclusive }); part >= 0 {
		return nil, models.Conflict("This cluster allocates whole GPUs only; %d cores were requested.", gpus[part].Cores)
	}
	list := corev1.ResourceList{}
	for name, n := range wanted {
		list[corev1.ResourceName(name)] = quantityOf(n)
	}
	return list, nil
}

func uuids(gpus []workspaces.GPU) string {
	var all []string
	for _, g := range gpus {
		all = append(all, g.UUID)
	}
	return strings.Join(all, ",")
}

// servedByMPS reports whether the pod of a share needs an MPS daemon.
func (c Config) servedByMPS(g workspaces.GPU) bool {
	return c.GPUBackend == BackendWeir && g.ServedByMPS()
}

// addMPS shows a pod the pipes of the daemons that serve its shares. What a
// daemon and its clients write to /dev/shm they must both see: the first
// daemon's stands in for the workspace's own. The volume reaches the pod by a
// claim, for a pod of the restricted kind may not name a node's directory.
func (c Config) addMPS(p *gpuObjects, gpus []workspaces.GPU) error {
	served := false
	for place, g := range gpus {
		if !c.servedByMPS(g) {
			continue
		}
		if c.MPSDir == "" {
			return fmt.Errorf("MPS serves the GPU %s, and the configuration names no directory for it", g.UUID)
		}
		if g.UUID == "" || strings.ContainsAny(g.UUID, "/.") {
			return fmt.Errorf("%q is not the UUID of a GPU", g.UUID)
		}
		p.mounts = append(p.mounts, core.VolumeMount().WithName(claimMPS).WithMountPath(workspaces.MPSPipe(place)).WithSubPath(g.UUID+"/pipe"))
		if !served {
			p.mounts = append(p.mounts, core.VolumeMount().WithName(claimMPS).WithMountPath("/dev/shm").WithSubPath(g.UUID+"/shm"))
			p.volumes = append(p.volumes, core.Volume().WithName(claimMPS).
				WithPersistentVolumeClaim(core.PersistentVolumeClaimVolumeSource().WithClaimName(claimMPS)))
		}
		served = true
	}
	return nil
}

// gpuLimits says how the shares are kept apart, claiming only what this
// configuration makes the cluster do.
func (c Config) gpuLimits(gpus []workspaces.GPU) []models.Limit {
	limits := map[string]models.Limit{}
	for _, g := range gpus {
		limit := models.Limit{Resource: "gpu"}
		limit.Enforced, limit.How = c.gpuLimit(g)
		limits[limit.How.String()] = limit
	}
	var all []models.Limit
	for _, how := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, limits[how])
	}
	return all
}

func (c Config) gpuLimit(g workspaces.GPU) (bool, models.Text) {
	switch {
	case g.Simulated:
		return false, models.Say("the device is simulated")
	case c.GPUBackend == BackendHAMi:
		return false, models.Say("HAMi limits only programs that keep its preloaded library")
	case c.GPUBackend == BackendNVIDIA:
		return true, models.Say("the whole device; the cluster does not share it")
	case c.RuntimeClass == "":
		return false, models.Say("this cluster is not configured to isolate a single device")
	case g.Enforcement == models.EnforcedExclusive:
		return true, models.Say("the whole device; other workspaces cannot access it")
	case g.Enforcement == models.EnforcedMIG:
		return true, models.Say("a MIG instance isolated by the hardware; other workspaces cannot access it")
	case g.Enforcement == models.EnforcedMPS:
		return false, models.Say("MPS limits only programs that keep its environment variables")
	}
	return false, models.Say("the device is shared with other workspaces; users must stay within their shares")
}
