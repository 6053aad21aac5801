package kube

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"
)

// namespaceObjects is what a project's namespace has before its first workspace. The
// order of the fields is that in which they are applied.
type namespaceObjects struct {
	Namespace *core.NamespaceApplyConfiguration
	Quota     *core.ResourceQuotaApplyConfiguration
	Limits    *core.LimitRangeApplyConfiguration
	Policies  []*networking.NetworkPolicyApplyConfiguration
	Volumes   []*core.PersistentVolumeApplyConfiguration
	Claims    []*core.PersistentVolumeClaimApplyConfiguration
	Jupyter   *core.ConfigMapApplyConfiguration
	Portal    *core.ServiceApplyConfiguration // for the workspaces' hosts; nil without
}

// projectObjects decides what a project's namespace has.
func (c Config) projectObjects(id int64, quota Quota) namespaceObjects {
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
		Jupyter:   core.ConfigMap(configJupyter, ns).WithLabels(labels).WithData(jupyterFiles()),
	}
	for _, policy := range p.Policies {
		policy.WithLabels(labels)
	}
	p.addVolume(ns, claimShared, labels, c.sharedVolume())
	if c.MPSDir != "" {
		p.addVolume(ns, claimMPS, labels, hostVolume(c.MPSDir))
	}
	if c.Ingress.Domain != "" {
		p.Portal = core.Service(servicePortal, ns).WithLabels(labels).
			WithSpec(core.ServiceSpec().WithType(corev1.ServiceTypeExternalName).WithExternalName(c.Ingress.Service))
	}
	return p
}

// quotaObject bounds a namespace. Nothing in it may be open to the outside.
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

// limitRange speaks for containers that say nothing themselves. Where a quota
// counts limits every container must have some.
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

// networkPolicies closes a namespace, and opens it to the portal on the
// notebooks' port and to what the configuration permits.
func (c Config) networkPolicies(ns string) []*networking.NetworkPolicyApplyConfiguration {
	closed := networking.NetworkPolicy("default-deny", ns).WithSpec(networking.NetworkPolicySpec().
		WithPodSelector(meta.LabelSelector()).WithPolicyTypes("Ingress", "Egress"))
	open := networking.NetworkPolicySpec().WithPolicyTypes("Ingress", "Egress").
		WithPodSelector(meta.LabelSelector().WithMatchLabels(map[string]string{labelName: nameNotebook})).
		WithIngress(networking.NetworkPolicyIngressRule().WithFrom(c.Portal.peers()...).WithPorts(policyPorts("TCP", notebookPort)...)).
		WithEgress(networking.NetworkPolicyEgressRule().WithTo(resolver()).
			WithPorts(policyPorts("UDP", 53)...).WithPorts(policyPorts("TCP", 53)...))
	if c.Portal.Port != 0 {
		open.WithEgress(networking.NetworkPolicyEgressRule().WithTo(c.Portal.peers()...).WithPorts(policyPorts("TCP", c.Portal.Port)...))
	}
	for _, e := range c.Egress {
		open.WithEgress(networking.NetworkPolicyEgressRule().WithPorts(policyPorts("TCP", e.Ports...)...).
			WithTo(networking.NetworkPolicyPeer().WithIPBlock(networking.IPBlock().WithCIDR(e.CIDR).WithExcept(e.Except...))))
	}
	return []*networking.NetworkPolicyApplyConfiguration{closed, networking.NetworkPolicy("notebooks", ns).WithSpec(open)}
}

// resolver is the cluster's DNS.
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

func policyPorts(protocol corev1.Protocol, ports ...int32) []*networking.NetworkPolicyPortApplyConfiguration {
	var all []*networking.NetworkPolicyPortApplyConfiguration
	for _, port := range ports {
		all = append(all, networking.NetworkPolicyPort().WithProtocol(protocol).WithPort(intOrString(port)))
	}
	return all
}

// addVolume gives the namespace a claim and the volume for it alone: a volume
// serves one claim, so each project has one of its own to the same storage.
// The volume names the claim and not the other way round: the cluster's
// controller, whose two halves trip over each other, then tries again at once.
func (p *namespaceObjects) addVolume(ns, claim string, labels map[string]string, spec *core.PersistentVolumeSpecApplyConfiguration) {
	// Neither NFS nor a directory is bounded by it; it must only be enough.
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Pi")}
	name := ns + "-" + claim
	p.Volumes = append(p.Volumes, core.PersistentVolume(name).WithLabels(labels).WithSpec(spec.
		WithCapacity(size).WithAccessModes(corev1.ReadWriteMany).WithStorageClassName("").
		WithPersistentVolumeReclaimPolicy(corev1.PersistentVolumeReclaimRetain).
		WithClaimRef(core.ObjectReference().WithKind("PersistentVolumeClaim").WithAPIVersion("v1").WithNamespace(ns).WithName(claim))))
	p.Claims = append(p.Claims, core.PersistentVolumeClaim(claim, ns).WithLabels(labels).WithSpec(core.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteMany).WithStorageClassName("").
		WithResources(core.VolumeResourceRequirements().WithRequests(size))))
}

func (c Config) sharedVolume() *core.PersistentVolumeSpecApplyConfiguration {
	if c.Storage.HostPath != "" {
		return hostVolume(c.Storage.HostPath)
	}
	return core.PersistentVolumeSpec().WithMountOptions(c.Storage.MountOptions...).
		WithNFS(core.NFSVolumeSource().WithServer(c.Storage.NFSServer).WithPath(c.Storage.NFSPath))
}

func hostVolume(dir string) *core.PersistentVolumeSpecApplyConfiguration {
	return core.PersistentVolumeSpec().WithHostPath(core.HostPathVolumeSource().WithPath(dir).WithType(corev1.HostPathDirectory))
}

// jupyterConfig suits the classic notebook and everything on jupyter_server;
// what one of them does not know it ignores. Jupyter takes its token from the
// environment.
var jupyterConfig = fmt.Sprintf(`c = get_config()  # noqa
for app in (c.NotebookApp, c.ServerApp):
    app.ip = "*"
    app.port = %d
    app.port_retries = 0
    app.base_url = "/"
    app.open_browser = False
    app.quit_button = False
    app.allow_remote_access = True
    app.allow_password_change = False
    app.password_required = False
c.PasswordIdentityProvider.allow_password_change = False
c.KernelManager.transport = "ipc"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
`, notebookPort)

// jupyterFiles are the configuration under each name that is looked for.
func jupyterFiles() map[string]string {
	files := map[string]string{}
	for _, program := range []string{"notebook", "server", "lab"} {
		files["jupyter_"+program+"_config.py"] = jupyterConfig
	}
	return files
}

func quantityOf(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
func milli(n int64) resource.Quantity      { return *resource.NewMilliQuantity(n, resource.DecimalSI) }
func mebibytes(mib int64) resource.Quantity {
	return resource.MustParse(strconv.FormatInt(mib, 10) + "Mi")
}
