package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"

	"weir/workspaces/runtime"
)

// namespaceObjects are the objects of a project: its namespace and what that
// contains before the first workspace.
type namespaceObjects struct {
	Namespace *core.NamespaceApplyConfiguration
	Quota     *core.ResourceQuotaApplyConfiguration
	Limits    *core.LimitRangeApplyConfiguration
	Policies  []*networking.NetworkPolicyApplyConfiguration
	Volumes   []*core.PersistentVolumeApplyConfiguration
	Claims    []*core.PersistentVolumeClaimApplyConfiguration
	Jupyter   *core.ConfigMapApplyConfiguration
	Services  []*core.ServiceApplyConfiguration // the portal's, for the workspaces' ingresses
}

// projectObjects returns the objects of a project.
func (c Config) projectObjects(id int64, quota Quota) (namespaceObjects, error) {
	ns, labels := c.namespace(id), c.labels(nameProject, id)
	levels := map[string]string{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		levels["pod-security.kubernetes.io/"+mode] = "restricted"
		levels["pod-security.kubernetes.io/"+mode+"-version"] = "latest"
	}
	p := namespaceObjects{
		Namespace: core.Namespace(ns).WithLabels(labels).WithLabels(levels),
		Quota:     quotaObject(ns, quota).WithLabels(labels),
		Limits:    c.limitRange(ns, quota).WithLabels(labels),
		Policies:  c.networkPolicies(ns),
		Jupyter: core.ConfigMap(configJupyter, ns).WithLabels(labels).WithData(runtime.JupyterFiles(`ip = "*"`,
			fmt.Sprintf("port = %d", notebookPort), "port_retries = 0")).WithData(runtime.GPUKernelFiles(kernelDir)).
			WithData(map[string]string{commandKey: runtime.Command}),
	}
	for _, policy := range p.Policies {
		policy.WithLabels(labels)
	}
	for _, d := range c.Directories(id) {
		volume, err := c.Storage.volume(d.Path, d.ReadOnly)
		if err != nil {
			return p, err
		}
		p.addVolume(ns, c.claimOf(d), labels, volume, d.ReadOnly)
	}
	if c.MPSDir != "" {
		volume, err := Storage{HostPath: c.MPSDir}.volume("", false)
		if err != nil {
			return p, err
		}
		p.addVolume(ns, claimMPS, labels, volume, false)
	}
	if c.Ingress.Domain != "" {
		p.Services = append(p.Services, core.Service(servicePortal, ns).WithLabels(labels).
			WithSpec(core.ServiceSpec().WithType(corev1.ServiceTypeExternalName).WithExternalName(c.Ingress.Service)))
	}
	return p, nil
}

// quotaObject limits a namespace, and forbids services that are reachable from
// outside the cluster.
func quotaObject(ns string, q Quota) *core.ResourceQuotaApplyConfiguration {
	hard := corev1.ResourceList{"services.loadbalancers": quantityOf(0), "services.nodeports": quantityOf(0)}
	for name, value := range map[corev1.ResourceName]resource.Quantity{
		"limits.cpu": milli(q.CPU), "limits.memory": mebibytes(q.Memory),
		"requests." + resourceCores: quantityOf(q.GPUCores), "pods": quantityOf(q.Workspaces),
	} {
		if !value.IsZero() {
			hard[name] = value
		}
	}
	return core.ResourceQuota("weir", ns).WithSpec(core.ResourceQuotaSpec().WithHard(hard))
}

// limitRange sets defaults for containers without limits, because a ResourceQuota
// requires limits of every container.
func (c Config) limitRange(ns string, q Quota) *core.LimitRangeApplyConfiguration {
	item := core.LimitRangeItem().WithType(corev1.LimitTypeContainer).WithDefaultRequest(corev1.ResourceList{
		corev1.ResourceCPU: milli(100), corev1.ResourceMemory: mebibytes(128)})
	limits := corev1.ResourceList{}
	if q.CPU > 0 {
		limits[corev1.ResourceCPU] = milli(min(q.CPU, 1000))
	}
	if q.Memory > 0 {
		limits[corev1.ResourceMemory] = mebibytes(min(q.Memory, 1024))
	}
	if len(limits) > 0 {
		item.WithDefault(limits)
	}
	return core.LimitRange("weir", ns).WithSpec(core.LimitRangeSpec().WithLimits(item))
}

// networkPolicies deny all connections except those from the portal to notebooks and
// the parts of deployments, those of notebooks to the portal and to runs, which admit their own
// workspace only, and, unless their project restricts them, to the DNS and the configured networks;
// see [Config.podPolicy].
func (c Config) networkPolicies(ns string) []*networking.NetworkPolicyApplyConfiguration {
	closed := networking.NetworkPolicy("default-deny", ns).WithSpec(networking.NetworkPolicySpec().
		WithPodSelector(meta.LabelSelector()).WithPolicyTypes("Ingress", "Egress"))
	commands := meta.LabelSelectorRequirement().WithKey(labelName).WithOperator("In").WithValues(nameNotebook, nameRun)
	open := networking.NetworkPolicySpec().WithPolicyTypes("Ingress", "Egress").
		WithPodSelector(meta.LabelSelector().WithMatchLabels(map[string]string{labelName: nameNotebook})).
		WithIngress(networking.NetworkPolicyIngressRule().WithFrom(c.Portal.peers()...).WithPorts(policyPorts("TCP", notebookPort)...))
	if c.Portal.Port != 0 {
		open.WithEgress(networking.NetworkPolicyEgressRule().WithTo(c.Portal.peers()...).WithPorts(policyPorts("TCP", c.Portal.Port)...),
			networking.NetworkPolicyEgressRule().WithPorts(policyPorts("TCP", notebookPort)...).WithTo(networking.NetworkPolicyPeer().
				WithPodSelector(meta.LabelSelector().WithMatchLabels(map[string]string{labelName: nameRun}))))
	}
	outgoing := networking.NetworkPolicySpec().WithPolicyTypes("Egress").
		WithPodSelector(meta.LabelSelector().WithMatchExpressions(commands,
			meta.LabelSelectorRequirement().WithKey(labelOutgoing).WithOperator("DoesNotExist"))).
		WithEgress(networking.NetworkPolicyEgressRule().WithTo(resolver()).
			WithPorts(policyPorts("UDP", 53)...).WithPorts(policyPorts("TCP", 53)...))
	for _, e := range c.Egress {
		outgoing.WithEgress(e.rule())
	}
	parts := networking.NetworkPolicySpec().WithPolicyTypes("Ingress", "Egress").
		WithPodSelector(meta.LabelSelector().WithMatchLabels(map[string]string{labelName: namePart})).
		WithIngress(networking.NetworkPolicyIngressRule().WithFrom(c.Portal.peers()...).WithPorts(policyPorts("TCP", notebookPort)...))
	return []*networking.NetworkPolicyApplyConfiguration{closed, networking.NetworkPolicy("notebooks", ns).WithSpec(open),
		networking.NetworkPolicy("outgoing", ns).WithSpec(outgoing), networking.NetworkPolicy("deployments", ns).WithSpec(parts)}
}

// resolver selects the cluster's DNS.
func resolver() *networking.NetworkPolicyPeerApplyConfiguration {
	return networking.NetworkPolicyPeer().
		WithNamespaceSelector(meta.LabelSelector().WithMatchLabels(map[string]string{"kubernetes.io/metadata.name": "kube-system"})).
		WithPodSelector(meta.LabelSelector().WithMatchLabels(map[string]string{"k8s-app": "kube-dns"}))
}

func (p Peer) peers() []*networking.NetworkPolicyPeerApplyConfiguration {
	var all []*networking.NetworkPolicyPeerApplyConfiguration
	if len(p.NamespaceLabels)+len(p.PodLabels) > 0 {
		all = append(all, networking.NetworkPolicyPeer().
			WithNamespaceSelector(meta.LabelSelector().WithMatchLabels(p.NamespaceLabels)).
			WithPodSelector(meta.LabelSelector().WithMatchLabels(p.PodLabels)))
	}
	for _, cidr := range p.CIDRs {
		all = append(all, networking.NetworkPolicyPeer().WithIPBlock(networking.IPBlock().WithCIDR(cidr)))
	}
	return all
}

// addVolume adds a claim and its volume, which no other claim can bind to. The volume
// refers to the claim and not vice versa, because the volume controller then retries a
// failed binding at once.
func (p *namespaceObjects) addVolume(ns, claim string, labels map[string]string, spec *core.PersistentVolumeSpecApplyConfiguration,
	readOnly bool) {
	// No backend enforces the capacity.
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Pi")}
	name := ns + "-" + claim
	p.Volumes = append(p.Volumes, core.PersistentVolume(name).WithLabels(labels).WithSpec(spec.
		WithCapacity(size).WithStorageClassName("").
		WithPersistentVolumeReclaimPolicy(corev1.PersistentVolumeReclaimRetain).
		WithClaimRef(core.ObjectReference().WithKind("PersistentVolumeClaim").WithAPIVersion("v1").WithNamespace(ns).WithName(claim))))
	p.Claims = append(p.Claims, core.PersistentVolumeClaim(claim, ns).WithLabels(labels).WithSpec(core.PersistentVolumeClaimSpec().
		WithAccessModes(accessMode(readOnly)).WithStorageClassName("").
		WithResources(core.VolumeResourceRequirements().WithRequests(size))))
}
