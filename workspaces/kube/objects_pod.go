package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

const (
	notebookPort = 8888 // also of runs and parts
	notebookHome = runtime.NotebookHome
	runDir       = "/tmp/weir" // sockets of kernels
	// Jupyter looks for kernels there, whatever JUPYTER_PATH is.
	kernelDir = "/usr/local/share/jupyter/kernels/python-gpu"
	// An image that has the program has it in /usr/local/bin, which PATH names before.
	commandPath = "/usr/bin/weir"
	commandKey  = "weir" // in the volume
	minShm      = 64     // MiB
)

// podObject returns the pod of one start.
func (c Config) podObject(spec runtime.Spec) (*core.PodApplyConfiguration, error) {
	pod, notebook, err := c.podOf(c.ref(spec), spec)
	if err != nil {
		return nil, err
	}
	if c.Portal.Port != 0 {
		addGPUKernel(notebook)
		addCommand(pod, notebook)
	}
	notebook.WithPorts(core.ContainerPort().WithName("http").WithContainerPort(notebookPort).WithProtocol(corev1.ProtocolTCP)).
		WithStartupProbe(c.probe())
	return pod.WithLabels(c.owned(c.workspaceLabels(spec))), nil
}

// pidFile has the process id of a run's command.
const pidFile = "/tmp/.weir-run"

// record tells the process id of a run's command, whose outputs are printed in their order.
const record = `echo $$ >` + pidFile + `; exec 2>&1; `

// runPodObject returns the pod of a run, whose command is that of spec. Its processes share
// the process namespace of the pod: the first process of a namespace ignores all signals
// that it has no handler for, and the command shall not be that.
func (c Config) runPodObject(k podKind, spec runtime.Spec) (*core.PodApplyConfiguration, error) {
	spec.Command = runtime.RunCommand(record, spec.Directory, spec.Command)
	pod, container, err := c.podOf(c.runRef(k, spec), spec)
	if err != nil {
		return nil, err
	}
	if c.besideOf(spec) != nil {
		addGPUKernel(container)
		container.WithEnv(core.EnvVar().WithName(runtime.RunPortVariable).WithValue(strconv.Itoa(notebookPort)))
	}
	pod.Spec.WithShareProcessNamespace(true)
	return pod.WithLabels(c.owned(c.runLabels(k, spec))), nil
}

// addGPUKernel mounts the kernel "Python (GPU)". The volume has the files of Jupyter's configuration, too.
func addGPUKernel(container *core.ContainerApplyConfiguration) {
	container.WithVolumeMounts(core.VolumeMount().WithName("jupyter").WithMountPath(kernelDir).WithReadOnly(true))
}

// addCommand mounts the script that runs weir, the command line.
func addCommand(pod *core.PodApplyConfiguration, container *core.ContainerApplyConfiguration) {
	script := core.ConfigMapVolumeSource().WithName(configJupyter).
		WithItems(core.KeyToPath().WithKey(commandKey).WithPath(commandKey).WithMode(0o555))
	pod.Spec.WithVolumes(core.Volume().WithName("command").WithConfigMap(script))
	container.WithVolumeMounts(core.VolumeMount().WithName("command").WithMountPath(commandPath).WithSubPath(commandKey).
		WithReadOnly(true))
}

// podOf returns a pod with one container that runs the command of spec, and the container.
func (c Config) podOf(r ref, spec runtime.Spec) (*core.PodApplyConfiguration, *core.ContainerApplyConfiguration, error) {
	container, volumes, err := c.containerObject(r, spec)
	if err != nil {
		return nil, nil, err
	}
	gpu, err := c.gpuPart(spec)
	if err != nil {
		return nil, nil, err
	}
	limits, err := json.Marshal(gpu.limits)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(*container.Resources.Limits, gpu.resources)
	maps.Copy(*container.Resources.Requests, gpu.resources)
	container.WithEnv(envVars(gpu.env)...).WithVolumeMounts(gpu.mounts...)
	pod := core.PodSpec().
		WithContainers(container).WithVolumes(volumes...).WithVolumes(gpu.volumes...).
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithTerminationGracePeriodSeconds(int64(c.Grace.Seconds())).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithHostname(hostname(r)).
		WithSecurityContext(core.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(c.userOf(spec)).WithRunAsGroup(cmp.Or(spec.GID, c.GID)).
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
	object := core.Pod(r.Pod, r.Namespace).WithAnnotations(gpu.annotations).
		WithAnnotations(map[string]string{annotationLimits: string(limits)}).WithSpec(pod)
	if spec.Outgoing != nil {
		err = restrict(object, spec.Outgoing)
	}
	return object, &object.Spec.Containers[0], err
}

// hostname is the name of a pod without the number of its start.
func hostname(r ref) string {
	kind, _, _ := strings.Cut(r.Pod, "-")
	return fmt.Sprintf("%s-%d", kind, r.Workspace)
}

// userOf is the user of a pod. With MPS, programs of several users have not been run yet.
func (c Config) userOf(spec runtime.Spec) int64 {
	if slices.ContainsFunc(spec.GPUs, c.servedByMPS) {
		return c.UID
	}
	return cmp.Or(spec.UID, c.UID)
}

// onNode requires the node that the pool chose. The scheduler still checks that
// the pod fits there.
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

// containerObject returns the container of a pod without its GPUs, and the volumes that it
// mounts.
func (c Config) containerObject(r ref, spec runtime.Spec) (*core.ContainerApplyConfiguration, []*core.VolumeApplyConfiguration, error) {
	image := cmp.Or(spec.Image, c.Image)
	if err := checkSpec(spec, image); err != nil {
		return nil, nil, err
	}
	mounts, volumes, err := c.mounts(spec)
	if err != nil {
		return nil, nil, err
	}
	command := slices.Clone(spec.Command)
	for i, word := range command {
		command[i] = literal(word)
	}
	notebook := core.Container().WithName(containerName).WithImage(image).
		WithCommand(command...).
		WithWorkingDir(notebookHome).
		WithEnvFrom(core.EnvFromSource().WithSecretRef(core.SecretEnvSource().WithName(r.Pod))).
		WithEnv(envVars(runtime.NotebookEnvironment(spec, runDir))...).
		WithResources(c.resources(spec)).
		WithVolumeMounts(mounts...).
		WithSecurityContext(core.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).WithRunAsNonRoot(true).
			WithCapabilities(core.Capabilities().WithDrop("ALL")))
	if c.PullPolicy != "" {
		notebook.WithImagePullPolicy(c.PullPolicy)
	}
	return notebook, volumes, nil
}

// checkSpec returns an error for a spec that cannot be launched.
func checkSpec(spec runtime.Spec, image string) error {
	if err := spec.Check(); err != nil {
		return err
	}
	if spec.Project <= 0 {
		return fmt.Errorf("a workspace needs the positive id of a project: %d", spec.Project)
	}
	if image == "" {
		return models.Conflict("The environment names no image, and kube-image is not set.")
	}
	for name := range spec.Env {
		if len(validation.IsConfigMapKey(name)) > 0 { // nor of a secret
			return fmt.Errorf("%q cannot be the name of a variable in a cluster: use letters, digits, dots, - and _", name)
		}
	}
	return nil
}

// literal escapes a word against Kubernetes' expansion of $(NAME).
func literal(word string) string { return strings.ReplaceAll(word, "$", "$$") }

func envVars(env map[string]string) []*core.EnvVarApplyConfiguration {
	var all []*core.EnvVarApplyConfiguration
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, core.EnvVar().WithName(name).WithValue(literal(env[name])))
	}
	return all
}

// resources returns the limits of the launch parameters. The requests are the
// memory and a part of the CPU, because notebooks are idle most of the time.
func (c Config) resources(spec runtime.Spec) *core.ResourceRequirementsApplyConfiguration {
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

// probe returns a startup probe with a period of one second. There is no liveness
// probe.
func (c Config) probe() *core.ProbeApplyConfiguration {
	const failures = 3600 // an hour; the reconciler has shorter timeouts
	p := core.Probe().WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(failures)
	if c.ProbePath == "-" {
		return p.WithTCPSocket(core.TCPSocketAction().WithPort(intstr.FromInt32(notebookPort)))
	}
	return p.WithHTTPGet(core.HTTPGetAction().WithPath(c.ProbePath).WithPort(intstr.FromInt32(notebookPort)))
}

// mounts returns the volumes of the shared directories, and those that a read-only
// root file system needs.
func (c Config) mounts(spec runtime.Spec) ([]*core.VolumeMountApplyConfiguration, []*core.VolumeApplyConfiguration, error) {
	tmp, shm := core.EmptyDirVolumeSource(), core.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory).
		WithSizeLimit(mebibytes(max(spec.Shm, minShm)))
	if c.Scratch > 0 {
		tmp.WithSizeLimit(mebibytes(c.Scratch))
	}
	volumes := []*core.VolumeApplyConfiguration{
		core.Volume().WithName("tmp").WithEmptyDir(tmp),
		core.Volume().WithName("jupyter").WithConfigMap(core.ConfigMapVolumeSource().WithName(configJupyter)),
	}
	mounts := []*core.VolumeMountApplyConfiguration{
		core.VolumeMount().WithName("tmp").WithMountPath("/tmp").WithSubPath("tmp"),
		core.VolumeMount().WithName("jupyter").WithMountPath(runtime.JupyterDir).WithReadOnly(true),
	}
	if !slices.ContainsFunc(spec.GPUs, c.servedByMPS) { // otherwise its daemon's
		volumes = append(volumes, core.Volume().WithName("shm").WithEmptyDir(shm))
		mounts = append(mounts, core.VolumeMount().WithName("shm").WithMountPath("/dev/shm"))
	}
	if !spec.MountsHome() {
		mounts = append(mounts, core.VolumeMount().WithName("tmp").WithMountPath(notebookHome).WithSubPath("home"))
	}
	used := map[string]bool{}
	for _, m := range spec.SortedMounts() {
		volume, below, err := c.locate(spec.Project, m.Source)
		if err != nil {
			return nil, nil, err
		}
		if !used[*volume.Name] {
			volumes = append(volumes, volume)
		}
		used[*volume.Name] = true
		mount := core.VolumeMount().WithName(*volume.Name).WithMountPath(m.Target).WithReadOnly(m.ReadOnly)
		if below != "" {
			mount.WithSubPath(below)
		}
		mounts = append(mounts, mount)
	}
	return mounts, volumes, nil
}

// locate returns the volume of the directory that the source of a mount is or is in, and
// the path in it.
func (c Config) locate(project int64, source string) (*core.VolumeApplyConfiguration, string, error) {
	root, source := path.Clean(c.SharedRoot), path.Clean(source)
	if c.EmptyDir != "" && source == root+c.EmptyDir {
		return core.Volume().WithName("empty").WithEmptyDir(core.EmptyDirVolumeSource()), "", nil
	}
	for _, d := range c.Directories(project) {
		if rest, ok := strings.CutPrefix(source, root+d.Path); ok && (rest == "" || rest[0] == '/') {
			return claimVolume(d.Name, c.claimOf(d), d.ReadOnly), strings.TrimPrefix(rest, "/"), nil
		}
	}
	return nil, "", fmt.Errorf("%s is in no shared directory of project %d", source, project)
}

// podOwned are the objects that are owned by one pod.
type podOwned struct {
	Secret  *core.SecretApplyConfiguration
	Service *core.ServiceApplyConfiguration
	Ingress *networking.IngressApplyConfiguration       // nil without a domain
	Policy  *networking.NetworkPolicyApplyConfiguration // nil where podPolicy is
}

// ownedObjects returns the other objects of a start, owned by its pod.
func (c Config) ownedObjects(spec runtime.Spec, pod *corev1.Pod) podOwned {
	r, labels := c.ref(spec), c.workspaceLabels(spec)
	owner := ownerOf(r, pod.UID)
	o := podOwned{
		Secret: secretObject(r, spec, pod.UID, map[string]string{"JUPYTER_TOKEN": spec.Token}).WithLabels(labels),
		Policy: c.podPolicy(r, pod, labels, nil),
		// Headless: it is a DNS name for the pod.
		Service: core.Service(r.Pod, r.Namespace).WithLabels(labels).WithOwnerReferences(owner).
			WithSpec(core.ServiceSpec().WithClusterIP(corev1.ClusterIPNone).WithSelector(labels).
				WithPorts(core.ServicePort().WithName("http").WithProtocol(corev1.ProtocolTCP).
					WithPort(notebookPort).WithTargetPort(intstr.FromInt32(notebookPort)))),
	}
	if c.Ingress.Domain != "" {
		// Named by its workspace: a second one with the host of the first is refused by ingress-nginx.
		o.Ingress = networking.Ingress(fmt.Sprintf("ws-%d", spec.Workspace), r.Namespace).WithLabels(labels).WithOwnerReferences(owner).
			WithAnnotations(c.Ingress.Annotations).WithSpec(c.ingressSpec(spec.Workspace))
	}
	return o
}

// runObjects returns the variables of a run and its policy, owned by its pod. Parts of
// deployments open no connections at all.
func (c Config) runObjects(k podKind, spec runtime.Spec, pod *corev1.Pod) podOwned {
	r, labels := c.runRef(k, spec), c.runLabels(k, spec)
	o := podOwned{Secret: secretObject(r, spec, pod.UID, nil).WithLabels(labels)}
	if k.name == nameRun {
		o.Policy = c.podPolicy(r, pod, labels, c.besideOf(spec))
	}
	return o
}

// secretObject returns the variables of spec and more of them, owned by a pod.
func secretObject(r ref, spec runtime.Spec, pod types.UID, more map[string]string) *core.SecretApplyConfiguration {
	env := map[string]string{"PIP_BREAK_SYSTEM_PACKAGES": "1"} // the root is read-only: pip can only write to the home
	maps.Copy(env, runtime.Threads(spec))
	maps.Copy(env, spec.Env)
	maps.Copy(env, more)
	return core.Secret(r.Pod, r.Namespace).WithOwnerReferences(ownerOf(r, pod)).WithImmutable(true).WithStringData(env)
}

func (c Config) ingressSpec(workspace int64) *networking.IngressSpecApplyConfiguration {
	host := fmt.Sprintf("ws-%d.%s", workspace, c.Ingress.Domain)
	spec := networking.IngressSpec().WithRules(networking.IngressRule().WithHost(host).WithHTTP(networking.HTTPIngressRuleValue().
		WithPaths(networking.HTTPIngressPath().WithPath("/").WithPathType("Prefix").WithBackend(networking.IngressBackend().
			WithService(networking.IngressServiceBackend().WithName(servicePortal).
				WithPort(networking.ServiceBackendPort().WithNumber(c.Ingress.Port)))))))
	if c.Ingress.Class != "" {
		spec.WithIngressClassName(c.Ingress.Class)
	}
	if c.Ingress.TLSSecret != "" {
		spec.WithTLS(networking.IngressTLS().WithHosts(host).WithSecretName(c.Ingress.TLSSecret))
	}
	return spec
}
