package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"

	"weir/models"
	"weir/workspaces"
)

const (
	notebookPort = 8888
	notebookHome = "/home/jovyan"
	notebookUser = "jovyan"
	jupyterDir   = "/etc/weir/jupyter"
	runDir       = "/tmp/weir" // sockets of kernels
	tokenName    = "JUPYTER_TOKEN"
	minShm       = 64 // MiB
)

func intOrString(port int32) intstr.IntOrString { return intstr.FromInt32(port) }

// podObject decides the pod of one start.
func (c Config) podObject(spec workspaces.Spec) (*core.PodApplyConfiguration, error) {
	r := c.ref(spec)
	notebook, volumes, err := c.containerObject(spec)
	if err != nil {
		return nil, err
	}
	gpu, err := c.gpuPart(spec)
	if err != nil {
		return nil, err
	}
	limits, err := json.Marshal(gpu.limits)
	if err != nil {
		return nil, err
	}
	maps.Copy(*notebook.Resources.Limits, gpu.resources)
	maps.Copy(*notebook.Resources.Requests, gpu.resources)
	notebook.WithEnv(envVars(gpu.env)...).WithVolumeMounts(gpu.mounts...)
	pod := core.PodSpec().
		WithContainers(notebook).WithVolumes(volumes...).WithVolumes(gpu.volumes...).
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithTerminationGracePeriodSeconds(int64(c.Grace.Seconds())).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithHostname(fmt.Sprintf("ws-%d", spec.Workspace)).
		WithSecurityContext(core.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(c.UID).WithRunAsGroup(c.GID).
			WithSeccompProfile(core.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
	if gpu.runtimeClass != "" {
		pod.WithRuntimeClassName(gpu.runtimeClass)
	}
	if spec.Node != "" {
		pod.WithAffinity(onNode(spec.Node))
	}
	for _, t := range c.Tolerations {
		pod.WithTolerations(toleration(t))
	}
	return core.Pod(r.Pod, r.Namespace).WithLabels(c.workspaceLabels(spec)).
		WithAnnotations(gpu.annotations).WithAnnotations(map[string]string{annotationLimits: string(limits)}).
		WithSpec(pod), nil
}

// onNode binds a pod to the node that the pool chose. The scheduler still
// checks that the node has enough.
func onNode(name string) *core.AffinityApplyConfiguration {
	return core.Affinity().WithNodeAffinity(core.NodeAffinity().WithRequiredDuringSchedulingIgnoredDuringExecution(
		core.NodeSelector().WithNodeSelectorTerms(core.NodeSelectorTerm().WithMatchFields(
			core.NodeSelectorRequirement().WithKey("metadata.name").WithOperator(corev1.NodeSelectorOpIn).WithValues(name)))))
}

func toleration(t corev1.Toleration) *core.TolerationApplyConfiguration {
	out := core.Toleration().WithOperator(t.Operator).WithEffect(t.Effect)
	if t.Key != "" {
		out.WithKey(t.Key)
	}
	if t.Value != "" {
		out.WithValue(t.Value)
	}
	if t.TolerationSeconds != nil {
		out.WithTolerationSeconds(*t.TolerationSeconds)
	}
	return out
}

// containerObject decides the notebook's container but for its GPUs, and the
// volumes that it mounts.
func (c Config) containerObject(spec workspaces.Spec) (*core.ContainerApplyConfiguration, []*core.VolumeApplyConfiguration, error) {
	image := spec.Image
	if image == "" {
		image = c.Image
	}
	if err := checkSpec(spec, image); err != nil {
		return nil, nil, err
	}
	mounts, volumes, err := c.mounts(spec)
	if err != nil {
		return nil, nil, err
	}
	notebook := core.Container().WithName(containerName).WithImage(image).
		WithCommand(literals(spec.Command)...).
		WithWorkingDir(notebookHome).
		WithPorts(core.ContainerPort().WithName("http").WithContainerPort(notebookPort).WithProtocol(corev1.ProtocolTCP)).
		WithEnvFrom(core.EnvFromSource().WithSecretRef(core.SecretEnvSource().WithName(c.ref(spec).Pod))).
		WithEnv(envVars(fixedEnv(spec))...).
		WithResources(c.resources(spec)).
		WithVolumeMounts(mounts...).
		WithStartupProbe(c.probe()).
		WithSecurityContext(core.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).WithRunAsNonRoot(true).
			WithCapabilities(core.Capabilities().WithDrop("ALL")))
	if c.PullPolicy != "" {
		notebook.WithImagePullPolicy(c.PullPolicy)
	}
	return notebook, volumes, nil
}

// checkSpec refuses a spec that cannot be run as it is.
func checkSpec(spec workspaces.Spec, image string) error {
	switch {
	case spec.Workspace <= 0 || spec.Project <= 0 || spec.Generation < 0:
		return fmt.Errorf("a workspace needs positive ids and a generation: workspace %d, project %d, generation %d",
			spec.Workspace, spec.Project, spec.Generation)
	case len(spec.Command) == 0:
		return fmt.Errorf("the environment names no command to run")
	case image == "":
		return fmt.Errorf("the environment names no image, and the configuration has none for it")
	}
	for name := range spec.Env {
		if len(validation.IsConfigMapKey(name)) > 0 { // and so of a secret, in which it is kept
			return fmt.Errorf("%q cannot be the name of a variable in a cluster: use letters, digits, dots, - and _", name)
		}
	}
	for _, m := range spec.Mounts {
		if err := checkTarget(m.Target); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget keeps mounts away from the system and from our own.
func checkTarget(target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || target == "/" || strings.Contains(target, ":") {
		return fmt.Errorf("%q is not a place for a mount", target)
	}
	top := strings.SplitN(target, "/", 3)[1]
	if slices.Contains([]string{"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp", "usr"}, top) {
		return fmt.Errorf("%s belongs to the system and is not a place for a mount", target)
	}
	return nil
}

// literal keeps a word from Kubernetes' own expansion of $(NAME).
func literal(word string) string { return strings.ReplaceAll(word, "$", "$$") }

func literals(words []string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = literal(word)
	}
	return all
}

// fixedEnv is what this runtime decides, over the workspace's own variables,
// which are in its secret.
func fixedEnv(spec workspaces.Spec) map[string]string {
	return map[string]string{
		"HOME": notebookHome, "USER": notebookUser, "LOGNAME": notebookUser, "NB_USER": notebookUser,
		"XDG_RUNTIME_DIR":     runDir,
		"JUPYTER_RUNTIME_DIR": runDir + "/jupyter",
		"JUPYTER_CONFIG_PATH": strings.TrimSuffix(jupyterDir+":"+spec.Env["JUPYTER_CONFIG_PATH"], ":"),
	}
}

func envVars(env map[string]string) []*core.EnvVarApplyConfiguration {
	var all []*core.EnvVarApplyConfiguration
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, core.EnvVar().WithName(name).WithValue(literal(env[name])))
	}
	return all
}

// resources limits a container as the launch parameters say. It reserves its
// memory, and of its CPU a part: notebooks are idle most of the time.
func (c Config) resources(spec workspaces.Spec) *core.ResourceRequirementsApplyConfiguration {
	limits, requests := corev1.ResourceList{}, corev1.ResourceList{}
	if spec.CPU > 0 {
		limits[corev1.ResourceCPU] = milli(spec.CPU)
		requests[corev1.ResourceCPU] = milli(max(spec.CPU*c.CPUShare/100, 1))
	}
	if spec.Memory > 0 {
		limits[corev1.ResourceMemory], requests[corev1.ResourceMemory] = mebibytes(spec.Memory), mebibytes(spec.Memory)
	}
	if c.Scratch > 0 {
		limits[corev1.ResourceEphemeralStorage] = mebibytes(c.Scratch)
		requests[corev1.ResourceEphemeralStorage] = mebibytes(min(c.Scratch, 64))
	}
	return core.ResourceRequirements().WithLimits(limits).WithRequests(requests)
}

// probe asks once a second whether a starting notebook answers, and never
// again when it has: there is no liveness probe.
func (c Config) probe() *core.ProbeApplyConfiguration {
	const failures = 3600 // an hour; the caller decides how long a start may take
	p := core.Probe().WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(failures)
	if c.ProbePath == "-" {
		return p.WithTCPSocket(core.TCPSocketAction().WithPort(intOrString(notebookPort)))
	}
	return p.WithHTTPGet(core.HTTPGetAction().WithPath(c.ProbePath).WithPort(intOrString(notebookPort)))
}

// mounts shows the shared directories, outer ones before those inside them,
// and what a read-only system needs beside them.
func (c Config) mounts(spec workspaces.Spec) ([]*core.VolumeMountApplyConfiguration, []*core.VolumeApplyConfiguration, error) {
	tmp, shm := core.EmptyDirVolumeSource(), core.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory).
		WithSizeLimit(mebibytes(max(spec.Shm, minShm)))
	if c.Scratch > 0 {
		tmp.WithSizeLimit(mebibytes(c.Scratch))
	}
	volumes := []*core.VolumeApplyConfiguration{
		core.Volume().WithName("tmp").WithEmptyDir(tmp),
		core.Volume().WithName("jupyter").WithConfigMap(core.ConfigMapVolumeSource().WithName(configJupyter)),
		core.Volume().WithName("shared").WithPersistentVolumeClaim(core.PersistentVolumeClaimVolumeSource().WithClaimName(claimShared)),
	}
	mounts := []*core.VolumeMountApplyConfiguration{
		core.VolumeMount().WithName("tmp").WithMountPath("/tmp").WithSubPath("tmp"),
		core.VolumeMount().WithName("jupyter").WithMountPath(jupyterDir).WithReadOnly(true),
	}
	if !slices.ContainsFunc(spec.GPUs, c.servedByMPS) { // its daemon's /dev/shm stands in
		volumes = append(volumes, core.Volume().WithName("shm").WithEmptyDir(shm))
		mounts = append(mounts, core.VolumeMount().WithName("shm").WithMountPath("/dev/shm"))
	}
	if !slices.ContainsFunc(spec.Mounts, func(m models.Mount) bool { return m.Target == notebookHome }) {
		mounts = append(mounts, core.VolumeMount().WithName("tmp").WithMountPath(notebookHome).WithSubPath("home"))
	}
	for _, m := range slices.SortedFunc(slices.Values(spec.Mounts), func(a, b models.Mount) int {
		return strings.Compare(a.Target, b.Target)
	}) {
		below, err := c.below(m.Source)
		if err != nil {
			return nil, nil, err
		}
		mounts = append(mounts, core.VolumeMount().WithName("shared").WithMountPath(m.Target).WithSubPath(below).WithReadOnly(m.ReadOnly))
	}
	return mounts, volumes, nil
}

// below tells a directory by its path below the shared root.
func (c Config) below(source string) (string, error) {
	rel, ok := strings.CutPrefix(path.Clean(source), path.Clean(c.SharedRoot)+"/")
	if !ok || rel == "" {
		return "", fmt.Errorf("the directory %s is not below the shared root %s", source, c.SharedRoot)
	}
	return rel, nil
}

// podOwned are the objects that belong to one pod and go with it.
type podOwned struct {
	Secret  *core.SecretApplyConfiguration
	Service *core.ServiceApplyConfiguration
	Ingress *networking.IngressApplyConfiguration // nil without a domain
}

// ownedObjects decides what else a start has, when its pod is there.
func (c Config) ownedObjects(spec workspaces.Spec, pod types.UID) podOwned {
	r, labels := c.ref(spec), c.workspaceLabels(spec)
	owner := meta.OwnerReference().WithAPIVersion("v1").WithKind("Pod").WithName(r.Pod).WithUID(pod).WithBlockOwnerDeletion(false).WithController(true)
	env := maps.Clone(spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{tokenName: spec.Token})
	if _, ok := env["PIP_BREAK_SYSTEM_PACKAGES"]; !ok {
		env["PIP_BREAK_SYSTEM_PACKAGES"] = "1" // the system is read-only: pip can only write to the home
	}
	o := podOwned{
		Secret: core.Secret(r.Pod, r.Namespace).WithLabels(labels).WithOwnerReferences(owner).
			WithImmutable(true).WithStringData(env),
		// Without an address of its own: it is a name for the pod's.
		Service: core.Service(r.Pod, r.Namespace).WithLabels(labels).WithOwnerReferences(owner).
			WithSpec(core.ServiceSpec().WithClusterIP(corev1.ClusterIPNone).WithSelector(labels).
				WithPorts(core.ServicePort().WithName("http").WithPort(notebookPort).WithTargetPort(intOrString(notebookPort)).WithProtocol(corev1.ProtocolTCP))),
	}
	if c.Ingress.Domain != "" {
		o.Ingress = networking.Ingress(r.Pod, r.Namespace).WithLabels(labels).WithOwnerReferences(owner).
			WithAnnotations(c.Ingress.Annotations).WithSpec(c.ingressSpec(spec.Workspace))
	}
	return o
}

func (c Config) ingressSpec(workspace int64) *networking.IngressSpecApplyConfiguration {
	host := fmt.Sprintf("ws-%d.%s", workspace, c.Ingress.Domain)
	spec := networking.IngressSpec().WithRules(networking.IngressRule().WithHost(host).WithHTTP(networking.HTTPIngressRuleValue().
		WithPaths(networking.HTTPIngressPath().WithPath("/").WithPathType("Prefix").WithBackend(networking.IngressBackend().
			WithService(networking.IngressServiceBackend().WithName(servicePortal).WithPort(networking.ServiceBackendPort().WithNumber(c.Ingress.Port)))))))
	if c.Ingress.Class != "" {
		spec.WithIngressClassName(c.Ingress.Class)
	}
	if c.Ingress.TLSSecret != "" {
		spec.WithTLS(networking.IngressTLS().WithHosts(host).WithSecretName(c.Ingress.TLSSecret))
	}
	return spec
}
