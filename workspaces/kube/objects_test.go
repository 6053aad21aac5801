package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"pgregory.net/rapid"

	"weir/models"
	"weir/workspaces/runtime"
)

func config(t testing.TB, change func(*Config)) Config {
	t.Helper()
	c := Config{Storage: Storage{NFSServer: "nfs.example", NFSPath: "/weir"}, SharedRoot: "/srv/weir", Directories: layout, EmptyDir: "/.weir/empty", Image: "weir/jupyter:1",
		Portal: Peer{NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "weir"}, PodLabels: map[string]string{labelName: "weir"}, Port: 8080}}
	if change != nil {
		change(&c)
	}
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func layout(project int64) []Directory {
	return []Directory{{Name: "project", Path: fmt.Sprintf("/notebook/%d", project)}, {Name: "public-model", Path: "/public_model", ReadOnly: true}}
}

func spec() runtime.Spec {
	return runtime.Spec{Workspace: 5, Generation: 2, Project: 7, Member: 9, Command: []string{"jupyter-lab"},
		Env: map[string]string{"WEIR_TOKEN": "weir-token-of-ana", "COST": "$(HOME)"}, Token: "notebook-token", CPU: 2000, Memory: 4096, Shm: 512,
		Mounts: []models.Mount{
			{Source: "/srv/weir/notebook/7/9", Target: "/home/jovyan"},
			{Source: "/srv/weir/notebook/7/project_model", Target: "/notebook/7/project_model"},
			{Source: "/srv/weir/notebook/7", Target: "/notebook/7", ReadOnly: true},
			{Source: "/srv/weir/public_model", Target: "/public_model", ReadOnly: true},
			{Source: "/srv/weir/.weir/empty", Target: "/notebook/7/8", ReadOnly: true},
		}}
}

func share(cores int64, enforcement string) runtime.GPU {
	return runtime.GPU{UUID: fmt.Sprintf("GPU-%s-%d", enforcement, cores), Cores: cores, MemoryMiB: 8000, Enforcement: enforcement}
}

// as makes of what is applied what the API server would have.
func as[T any](t interface {
	Helper()
	Fatal(...any)
}, applied any) T {
	t.Helper()
	var object T
	b, err := json.Marshal(applied)
	if err == nil {
		err = json.Unmarshal(b, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func podOf(t testing.TB, c Config, s runtime.Spec) corev1.Pod {
	t.Helper()
	applied, err := c.podObject(s)
	if err != nil {
		t.Fatal(err)
	}
	return as[corev1.Pod](t, applied)
}

func mountAt(pod corev1.Pod, target string) corev1.VolumeMount {
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if m.MountPath == target {
			return m
		}
	}
	return corev1.VolumeMount{}
}

func envOf(pod corev1.Pod, name string) string {
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func TestPodIsAsTheSpecSays(t *testing.T) {
	c := config(t, nil)
	pod := podOf(t, c, spec())
	if pod.Name != "ws-5-2" || pod.Namespace != "weir-p-7" {
		t.Errorf("it is %s in %s", pod.Name, pod.Namespace)
	}
	for label, want := range map[string]string{labelProject: "7", labelMember: "9", labelWorkspace: "5", labelGeneration: "2",
		labelName: nameNotebook, labelInstance: "weir", labelManagedBy: "weir", labelPartOf: "weir"} {
		if pod.Labels[label] != want {
			t.Errorf("label %s is %q, not %q", label, pod.Labels[label], want)
		}
	}
	limits, requests := pod.Spec.Containers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Requests
	if limits.Cpu().String() != "2" || limits.Memory().String() != "4Gi" || requests.Cpu().String() != "500m" || requests.Memory().String() != "4Gi" {
		t.Errorf("limits %v, requests %v", limits, requests)
	}
	for target, want := range map[string]corev1.VolumeMount{
		"/home/jovyan":              {SubPath: "9", Name: "project"},
		"/notebook/7":               {Name: "project", ReadOnly: true},
		"/notebook/7/project_model": {SubPath: "project_model", Name: "project"},
		"/public_model":             {Name: "public-model", ReadOnly: true},
		"/notebook/7/8":             {Name: "empty", ReadOnly: true},
		"/tmp":                      {SubPath: "tmp", Name: "tmp"},
		runtime.JupyterDir:          {Name: "jupyter", ReadOnly: true},
		"/dev/shm":                  {Name: "shm"},
	} {
		want.MountPath = target
		if got := mountAt(pod, target); got != want {
			t.Errorf("at %s: %+v", target, got)
		}
	}
	outer := slices.IndexFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/notebook/7" })
	inner := slices.IndexFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/notebook/7/project_model" })
	if outer > inner {
		t.Error("the outer directory would cover the inner one")
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name == "shm" && (v.EmptyDir.Medium != corev1.StorageMediumMemory || v.EmptyDir.SizeLimit.String() != "512Mi") {
			t.Errorf("/dev/shm is %+v", v.EmptyDir)
		}
	}
	if pod.Spec.Affinity != nil || pod.Spec.RuntimeClassName != nil {
		t.Error("without GPUs it is bound to something")
	}
	if envOf(pod, "NVIDIA_VISIBLE_DEVICES") != "void" {
		t.Error("without GPUs it sees some")
	}
}

func TestSecretsAreNotInThePod(t *testing.T) {
	c, s := config(t, nil), spec()
	b, err := json.Marshal(podOf(t, c, s))
	if err != nil {
		t.Fatal(err)
	}
	pod := podOf(t, c, s)
	pod.UID = "pod-uid"
	o := c.ownedObjects(s, &pod)
	secret := as[corev1.Secret](t, o.Secret)
	for name, value := range map[string]string{"JUPYTER_TOKEN": s.Token, "WEIR_TOKEN": "weir-token-of-ana", "COST": "$(HOME)"} {
		if strings.Contains(string(b), value) {
			t.Errorf("the pod shows %s", name)
		}
		if secret.StringData[name] != value {
			t.Errorf("the secret says %s=%q", name, secret.StringData[name])
		}
	}
	if pod := podOf(t, c, s); pod.Spec.Containers[0].EnvFrom[0].SecretRef.Name != secret.Name {
		t.Errorf("the pod takes its environment from %+v, not from %s", pod.Spec.Containers[0].EnvFrom, secret.Name)
	}
	for _, object := range []metav1.Object{&secret, new(as[corev1.Service](t, o.Service))} {
		owners := object.GetOwnerReferences()
		if len(owners) != 1 || owners[0].UID != "pod-uid" || owners[0].Kind != "Pod" || owners[0].Name != "ws-5-2" {
			t.Errorf("%s %s is owned by %+v", object.GetNamespace(), object.GetName(), owners)
		}
		// It ends after its pod, which it must not hold up; Weir may not set finalizers of pods either.
		if block := owners[0].BlockOwnerDeletion; block == nil || *block || owners[0].Controller == nil || !*owners[0].Controller {
			t.Errorf("%s %s is owned by %+v", object.GetNamespace(), object.GetName(), owners[0])
		}
	}
}

// A word of Kubernetes' own language must reach the notebook as it is.
func TestLiteral(t *testing.T) {
	for _, word := range []string{"plain", "$HOME", "$(HOME)", "$$", "$$(HOME)", "a$", "$$$(x)$"} {
		if got := expand(literal(word)); got != word {
			t.Errorf("%q arrives as %q", word, got)
		}
	}
}

// expand does what the kubelet does with a command's words: $$ is a dollar,
// $(NAME) a variable.
func expand(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$' && i+1 < len(s) && s[i+1] == '$':
			out.WriteByte('$')
			i++
		case s[i] == '$' && i+1 < len(s) && s[i+1] == '(':
			out.WriteString("EXPANDED")
			i += strings.IndexByte(s[i:], ')')
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

func TestGPUBackends(t *testing.T) {
	whole, half := share(100, models.EnforcedExclusive), share(50, models.EnforcedAdvisory)
	for _, test := range []struct {
		name      string
		backend   string
		gpus      []runtime.GPU
		resources map[corev1.ResourceName]int64
		visible   string
		class     string
		refused   string
	}{
		{name: "weir", backend: BackendWeir, gpus: []runtime.GPU{whole, half},
			resources: map[corev1.ResourceName]int64{resourceCores: 150}, visible: whole.UUID + "," + half.UUID, class: "nvidia"},
		{name: "simulated", backend: BackendWeir, gpus: []runtime.GPU{{UUID: "GPU-S", Cores: 30, Simulated: true}},
			resources: map[corev1.ResourceName]int64{resourceCores: 30}, visible: "GPU-S"},
		{name: "nvidia", backend: BackendNVIDIA, gpus: []runtime.GPU{whole, whole}, resources: map[corev1.ResourceName]int64{"nvidia.com/gpu": 2}},
		{name: "nvidia, half", backend: BackendNVIDIA, gpus: []runtime.GPU{half}, refused: "whole GPUs only; 50 GPU cores"},
		{name: "hami", backend: BackendHAMi, gpus: []runtime.GPU{half},
			resources: map[corev1.ResourceName]int64{"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50, "nvidia.com/gpumem": 8000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := config(t, func(c *Config) { c.GPUBackend, c.RuntimeClass = test.backend, "nvidia" })
			s := spec()
			s.GPUs, s.Node = test.gpus, "node-a"
			if test.refused != "" {
				if _, err := c.podObject(s); err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("it says %v", err)
				}
				return
			}
			pod := podOf(t, c, s)
			limits, requests := pod.Spec.Containers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Requests
			for name, want := range test.resources {
				limit, request := limits[name], requests[name]
				if limit.Value() != want || request.Value() != want {
					t.Errorf("%s: limit %s, request %s, want %d", name, limit.String(), request.String(), want)
				}
			}
			if len(limits) != 2+len(test.resources) {
				t.Errorf("limits %v", limits)
			}
			if got := envOf(pod, "NVIDIA_VISIBLE_DEVICES"); got != test.visible {
				t.Errorf("it sees %q, not %q", got, test.visible)
			}
			if class := pod.Spec.RuntimeClassName; test.class != "" && (class == nil || *class != test.class) || test.class == "" && class != nil {
				t.Errorf("runtime class %v", class)
			}
			if uuids := pod.Annotations["nvidia.com/use-gpuuuid"]; (test.backend == BackendHAMi) != (uuids == half.UUID) {
				t.Errorf("HAMi is told %q", uuids)
			}
			terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			if len(terms) != 1 || terms[0].MatchFields[0].Key != "metadata.name" || terms[0].MatchFields[0].Values[0] != "node-a" {
				t.Errorf("bound to %+v", terms)
			}
		})
	}
}

func TestMPS(t *testing.T) {
	s := spec()
	s.GPUs = []runtime.GPU{share(50, models.EnforcedMPS), share(25, models.EnforcedMPS)}
	if _, err := config(t, nil).podObject(s); err == nil || !strings.Contains(err.Error(), "kube-mps-dir is not set") {
		t.Errorf("without a directory it says %v", err)
	}
	pod := podOf(t, config(t, func(c *Config) { c.MPSDir = "/run/weir/mps" }), s)
	for target, below := range map[string]string{"/run/nvidia-mps/0": "GPU-mps-50/pipe", "/run/nvidia-mps/1": "GPU-mps-25/pipe", "/dev/shm": "GPU-mps-50/shm"} {
		if m := mountAt(pod, target); m.SubPath != below || m.Name != claimMPS {
			t.Errorf("at %s: %+v", target, m)
		}
	}
	if envOf(pod, "CUDA_MPS_PIPE_DIRECTORY") != "/run/nvidia-mps/0" {
		t.Error("its programs do not find the daemon")
	}
	s.GPUs[0].UUID = "../etc"
	if _, err := config(t, func(c *Config) { c.MPSDir = "/run/weir/mps" }).podObject(s); err == nil {
		t.Error("a directory beside the daemons' was accepted")
	}
}

func TestSpecsThatCannotRun(t *testing.T) {
	for name, change := range map[string]func(*runtime.Spec){
		"no command":           func(s *runtime.Spec) { s.Command = nil },
		"no id":                func(s *runtime.Spec) { s.Workspace = 0 },
		"no project":           func(s *runtime.Spec) { s.Project = 0 },
		"relative target":      func(s *runtime.Spec) { s.Mounts[0].Target = "home" },
		"target of the system": func(s *runtime.Spec) { s.Mounts[0].Target = "/etc/weir" },
		"source elsewhere":     func(s *runtime.Spec) { s.Mounts[0].Source = "/etc" },
		"source beside":        func(s *runtime.Spec) { s.Mounts[0].Source = "/srv/weirdo" },
		"source above":         func(s *runtime.Spec) { s.Mounts[0].Source = "/srv/weir/../x" },
		"a variable's name":    func(s *runtime.Spec) { s.Env["A B"] = "" },
		"the whole root":       func(s *runtime.Spec) { s.Mounts[0].Source = "/srv/weir/" },
		"another project":      func(s *runtime.Spec) { s.Mounts[0].Source = "/srv/weir/notebook/8/9" },
		"a project beside":     func(s *runtime.Spec) { s.Mounts[0].Source = "/srv/weir/notebook/70" },
		"all projects":         func(s *runtime.Spec) { s.Mounts[0].Source = "/srv/weir/notebook" },
	} {
		s := spec()
		change(&s)
		if _, err := config(t, nil).podObject(s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := config(t, func(c *Config) { c.Image = "" }).podObject(spec()); err == nil {
		t.Error("no image: accepted")
	}
}

func TestConfigSaysAllThatIsWrong(t *testing.T) {
	_, err := Config{GPUBackend: "amd", CPUShare: 200, UID: -1, Ingress: Ingress{Domain: "apps.example"}}.withDefaults()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"storage", "shared root", "root: user -1", "200 percent", `"amd"`, "where the portal is", "apps.example"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not speak of %s:\n%v", want, err)
		}
	}
}

// Whatever is asked for, the pod is one that a namespace of the restricted
// kind admits.
func TestEveryPodIsRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		pod := as[corev1.Pod](t, anyPod(t))
		for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
		c := pod.Spec.Containers[0]
		if *pod.Spec.AutomountServiceAccountToken || !*c.SecurityContext.ReadOnlyRootFilesystem || *pod.Spec.SecurityContext.RunAsUser == 0 {
			t.Errorf("it has more than it needs: %+v", pod.Spec)
		}
		mounted := map[string]bool{}
		for _, m := range c.VolumeMounts {
			if mounted[m.MountPath] {
				t.Errorf("two mounts at %s", m.MountPath)
			}
			mounted[m.MountPath] = true
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s is mounted and is no volume", m.Name)
			}
		}
		if !mounted[notebookHome] || !mounted["/tmp"] || !mounted["/dev/shm"] {
			t.Errorf("something to write to is missing: %v", mounted)
		}
	})
}

func anyPod(t *rapid.T) any {
	number := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
	c, err := Config{Storage: Storage{HostPath: "/srv/weir"}, SharedRoot: "/srv/weir", Directories: layout, Image: "weir/jupyter:1",
		Portal: Peer{CIDRs: []string{"10.0.0.1/32"}}, MPSDir: "/run/weir/mps", RuntimeClass: rapid.SampledFrom([]string{"", "nvidia"}).Draw(t, "class"),
		GPUBackend: rapid.SampledFrom([]string{BackendWeir, BackendHAMi}).Draw(t, "back end"),
		Scratch:    number("scratch", 2048), UID: number("uid", 70000), PullPolicy: corev1.PullNever,
		Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := runtime.Spec{Workspace: 1 + number("workspace", 1e9), Generation: number("generation", 1e6), Project: 1 + number("project", 1e9),
		Command: rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "command"), Env: rapid.MapOf(rapid.StringMatching(`[A-Z][A-Z0-9_]{0,20}`), rapid.String()).Draw(t, "env"),
		Token: rapid.String().Draw(t, "token"), CPU: number("cpu", 64000), Memory: number("memory", 1<<20), Shm: number("shm", 1<<16),
		Node: rapid.SampledFrom([]string{"", "node-a"}).Draw(t, "node")}
	for i := range number("mounts", 5) {
		s.Mounts = append(s.Mounts, models.Mount{Source: fmt.Sprintf("/srv/weir/notebook/%d/%d", s.Project, i), ReadOnly: rapid.Bool().Draw(t, "read-only"),
			Target: []string{notebookHome, "/notebook/1", "/notebook/1/2", "/public_model", "/public_dataset"}[i]})
	}
	for i := range number("gpus", 4) {
		s.GPUs = append(s.GPUs, runtime.GPU{UUID: fmt.Sprintf("GPU-%d", i), Cores: 1 + number("cores", 99), MemoryMiB: number("gpu memory", 80000),
			Simulated: rapid.Bool().Draw(t, "simulated"), Enforcement: rapid.SampledFrom([]string{models.EnforcedExclusive, models.EnforcedMIG,
				models.EnforcedMPS, models.EnforcedAdvisory}).Draw(t, "enforcement")})
	}
	applied, err := c.podObject(s)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func TestProjectIsClosed(t *testing.T) {
	c := config(t, func(c *Config) {
		c.Egress = []Egress{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}, Ports: []int32{443}}}
		c.Ingress = Ingress{Domain: "apps.example", Class: "nginx", TLSSecret: "apps-tls", Service: "weir.weir.svc.cluster.local", Port: 80}
	})
	p, err := c.projectObjects(7, Quota{CPU: 8000, Memory: 1 << 15, GPUCores: 300, Workspaces: 4})
	if err != nil {
		t.Fatal(err)
	}
	if ns := as[corev1.Namespace](t, p.Namespace); ns.Name != "weir-p-7" || ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || ns.Labels[labelProject] != "7" {
		t.Errorf("namespace %s with %v", ns.Name, ns.Labels)
	}
	hard := as[corev1.ResourceQuota](t, p.Quota).Spec.Hard
	for name, want := range map[corev1.ResourceName]string{"limits.cpu": "8", "limits.memory": "32Gi", "requests.weir.dev/gpu-cores": "300", "pods": "4",
		"services.loadbalancers": "0", "services.nodeports": "0"} {
		if got := hard[name]; got.String() != want {
			t.Errorf("quota of %s is %s, not %s", name, got.String(), want)
		}
	}
	closed, open := as[netv1.NetworkPolicy](t, p.Policies[0]).Spec, as[netv1.NetworkPolicy](t, p.Policies[1]).Spec
	if len(closed.PolicyTypes) != 2 || len(closed.Ingress)+len(closed.Egress) != 0 || len(closed.PodSelector.MatchLabels) != 0 {
		t.Errorf("not everything is closed: %+v", closed)
	}
	if open.PodSelector.MatchLabels[labelName] != nameNotebook || len(open.PodSelector.MatchExpressions) != 0 || len(open.Ingress) != 1 || open.Ingress[0].Ports[0].Port.IntVal != notebookPort ||
		len(open.Ingress[0].From) != 1 || open.Ingress[0].From[0].PodSelector.MatchLabels[labelName] != "weir" {
		t.Errorf("notebooks are open to %+v", open.Ingress)
	}
	outgoing := as[netv1.NetworkPolicy](t, p.Policies[2]).Spec.Egress
	if len(open.Egress) != 2 || open.Egress[1].To[0].PodSelector.MatchLabels[labelName] != nameRun || len(outgoing) != 2 || outgoing[1].To[0].IPBlock.CIDR != "0.0.0.0/0" || outgoing[1].Ports[0].Port.IntVal != 443 {
		t.Errorf("notebooks reach %+v and %+v", open.Egress, outgoing)
	}
	parts := as[netv1.NetworkPolicy](t, p.Policies[3]).Spec
	if c.runLabels(kindPart, spec())[labelName] != parts.PodSelector.MatchLabels[labelName] || len(parts.PolicyTypes) != 2 || len(parts.Egress) != 0 ||
		len(parts.Ingress) != 1 || parts.Ingress[0].Ports[0].Port.IntVal != notebookPort || parts.Ingress[0].From[0].PodSelector.MatchLabels[labelName] != "weir" {
		t.Errorf("parts are open to %+v", parts)
	}
	volume, claim := as[corev1.PersistentVolume](t, p.Volumes[0]), as[corev1.PersistentVolumeClaim](t, p.Claims[0])
	if volume.Spec.NFS.Server != "nfs.example" || volume.Spec.NFS.Path != "/weir/notebook/7" || volume.Spec.ClaimRef.Namespace != "weir-p-7" ||
		volume.Spec.ClaimRef.Name != claim.Name || *claim.Spec.StorageClassName != "" || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("volume %+v, claim %+v", volume.Spec, claim.Spec)
	}
	if portal := as[corev1.Service](t, p.Services[0]); portal.Spec.ExternalName != "weir.weir.svc.cluster.local" {
		t.Errorf("the portal is at %+v", portal.Spec)
	}
	restarted := spec()
	restarted.Generation++
	first, second := c.ownedObjects(spec(), new(corev1.Pod)), c.ownedObjects(restarted, new(corev1.Pod))
	if *first.Ingress.GetName() != *second.Ingress.GetName() || *first.Service.GetName() == *second.Service.GetName() {
		t.Errorf("a restart has the ingress %s after %s", *second.Ingress.GetName(), *first.Ingress.GetName())
	}
	ingress := as[netv1.Ingress](t, first.Ingress).Spec
	backend := ingress.Rules[0].HTTP.Paths[0].Backend.Service
	if ingress.Rules[0].Host != "ws-5.apps.example" || backend.Name != servicePortal || backend.Port.Number != 80 || ingress.TLS[0].SecretName != "apps-tls" {
		t.Errorf("ingress %+v", ingress)
	}
}

func TestGPULimitsClaimNoMoreThanIsDone(t *testing.T) {
	exclusive := share(100, models.EnforcedExclusive)
	for _, test := range []struct {
		backend, class string
		gpu            runtime.GPU
		enforced       bool
	}{
		{BackendWeir, "nvidia", exclusive, true},
		{BackendWeir, "", exclusive, false},
		{BackendWeir, "nvidia", share(50, models.EnforcedMIG), true},
		{BackendWeir, "nvidia", share(50, models.EnforcedMPS), false},
		{BackendWeir, "nvidia", share(50, models.EnforcedAdvisory), false},
		{BackendWeir, "nvidia", runtime.GPU{Simulated: true, Enforcement: models.EnforcedExclusive}, false},
		{BackendNVIDIA, "", exclusive, true},
		{BackendHAMi, "", share(50, models.EnforcedAdvisory), false},
	} {
		c := config(t, func(c *Config) { c.GPUBackend, c.RuntimeClass = test.backend, test.class })
		if enforced, how := c.gpuLimit(test.gpu); enforced != test.enforced || how.Empty() {
			t.Errorf("%+v: %t, %s", test, enforced, how)
		}
	}
}

func TestGraceReachesThePod(t *testing.T) {
	pod := podOf(t, config(t, func(c *Config) { c.Grace = 9 * time.Second }), spec())
	if *pod.Spec.TerminationGracePeriodSeconds != 9 {
		t.Errorf("grace %d s", *pod.Spec.TerminationGracePeriodSeconds)
	}
}

func TestHAMiResources(t *testing.T) {
	for name, c := range map[string]struct {
		gpus []runtime.GPU
		want map[string]int64
	}{
		"each": {[]runtime.GPU{{Cores: 50, MemoryMiB: 4096}, {Cores: 50, MemoryMiB: 4096}},
			map[string]int64{"nvidia.com/gpu": 2, "nvidia.com/gpucores": 50, "nvidia.com/gpumem": 4096}},
		"the least": {[]runtime.GPU{{Cores: 50, MemoryMiB: 2048}, {Cores: 25, MemoryMiB: 4096}},
			map[string]int64{"nvidia.com/gpu": 2, "nvidia.com/gpucores": 25, "nvidia.com/gpumem": 2048}},
		"all memory": {[]runtime.GPU{{Cores: 100}}, map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpucores": 100}},
	} {
		got := map[string]int64{}
		for resource, quantity := range hamiResources(c.gpus) {
			got[string(resource)] = quantity.Value()
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
