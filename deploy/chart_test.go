package deploy

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// serviceMonitor is the part of Prometheus Operator's kind that the chart
// uses.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
			Auth     struct {
				Credentials struct {
					Name string `json:"name"`
					Key  string `json:"key"`
				} `json:"credentials"`
			} `json:"authorization"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (m *serviceMonitor) DeepCopyObject() runtime.Object { c := *m; return &c }

func init() {
	scheme.Scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}, &serviceMonitor{})
}

// installation is the chart rendered with one set of values.
type installation struct {
	*testing.T
	all []runtime.Object
}

// each runs a test on every set of values in testdata.
func each(t *testing.T, test func(i installation)) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d sets of values, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			test(installation{t, rendered(t, "deploy/"+file)})
		})
	}
}

func rendered(t *testing.T, values ...string) []runtime.Object {
	t.Helper()
	text, err := Render(t.Context(), Release, values...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// one is the only object of a type.
func one[T runtime.Object](i installation) T {
	i.Helper()
	list := Of[T](i.all)
	if len(list) != 1 {
		i.Fatalf("%d objects of %T", len(list), *new(T))
	}
	return list[0]
}

// named finds an object by its name.
func named[T interface {
	runtime.Object
	metav1.Object
}](i installation, name string) T {
	i.Helper()
	list := Of[T](i.all)
	at := slices.IndexFunc(list, func(o T) bool { return o.GetName() == name })
	if at < 0 {
		i.Fatalf("there is no %T %s", *new(T), name)
	}
	return list[at]
}

func TestManifestsAreFresh(t *testing.T) {
	text, err := Render(t.Context(), Release, "deploy/manifests-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, Manifests) {
		t.Error("the manifests are not what the chart renders: run “make manifests”")
	}
	if all, err := Objects(Manifests); err != nil || len(all) < 15 {
		t.Errorf("%d objects, %v", len(all), err)
	}
}

// Unknown fields are errors.
func TestStrict(t *testing.T) {
	const text = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"
	if all, err := Objects([]byte(text + "---\n# nothing\n---\n" + text)); err != nil || len(all) != 2 {
		t.Errorf("%d objects, %v", len(all), err)
	}
	for _, wrong := range []string{text + "automount: true\n", text + "kind: Secret\n", "apiVersion: v1\nkind: Nothing\n"} {
		if _, err := Objects([]byte(wrong)); err == nil {
			t.Errorf("read without an error:\n%s", wrong)
		}
	}
}

func TestNamesFit(t *testing.T) {
	each(t, func(i installation) {
		portal := one[*appsv1.Deployment](i)
		checkPods(i, portal.Spec.Selector, portal.Spec.Template)
		pods := labels.Set(portal.Spec.Template.Labels)
		for _, s := range Of[*corev1.Service](i.all) {
			for _, port := range s.Spec.Ports {
				if !labels.SelectorFromSet(s.Spec.Selector).Matches(pods) || !hasPort(portal.Spec.Template, port.TargetPort.String()) {
					i.Errorf("the service %s leads nowhere", s.Name)
				}
			}
		}
		for _, p := range Of[*netv1.NetworkPolicy](i.all) {
			selects(i, &p.Spec.PodSelector, pods)
		}
		for _, p := range Of[*policyv1.PodDisruptionBudget](i.all) {
			selects(i, p.Spec.Selector, pods)
		}
		for _, c := range portal.Spec.Template.Spec.TopologySpreadConstraints {
			selects(i, c.LabelSelector, pods)
		}
		// The workspaces' network policies select the portal by this label and
		// namespace.
		if pods["app.kubernetes.io/name"] != "weir" || portal.Namespace != "weir" {
			i.Errorf("the portal's pods are %v in %s", pods, portal.Namespace)
		}
		for _, d := range Of[*appsv1.DaemonSet](i.all) {
			checkPods(i, d.Spec.Selector, d.Spec.Template)
			if labels.SelectorFromSet(portal.Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)) {
				i.Error("the agents' pods pass for the portal's")
			}
			if account := named[*corev1.ServiceAccount](i, d.Spec.Template.Spec.ServiceAccountName); account.Namespace != d.Namespace {
				i.Errorf("the agents' account is in %s", account.Namespace)
			}
		}
	})
}

func selects(i installation, by *metav1.LabelSelector, pods labels.Set) {
	i.Helper()
	if s, err := metav1.LabelSelectorAsSelector(by); err != nil || s.Empty() || !s.Matches(pods) {
		i.Errorf("%v does not select %v: %v", by, pods, err)
	}
}

func hasPort(pod corev1.PodTemplateSpec, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
}

// checkPods checks a template against its selector, and its mounts against its
// volumes.
func checkPods(i installation, selector *metav1.LabelSelector, pod corev1.PodTemplateSpec) {
	i.Helper()
	selects(i, selector, labels.Set(pod.Labels))
	mounted := map[string]bool{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		mounted[m.Name] = true
	}
	for _, v := range pod.Spec.Volumes {
		if !mounted[v.Name] {
			i.Errorf("nothing mounts the volume %s", v.Name)
		}
		delete(mounted, v.Name)
	}
	for name := range mounted {
		i.Errorf("there is no volume %s", name)
	}
	if probe := pod.Spec.Containers[0].ReadinessProbe; probe != nil && !hasPort(pod, probe.HTTPGet.Port.String()) {
		i.Errorf("the probe asks the port %s", probe.HTTPGet.Port.String())
	}
}

func TestAccounts(t *testing.T) {
	each(t, func(i installation) {
		portal, binding := one[*appsv1.Deployment](i), one[*rbacv1.ClusterRoleBinding](i)
		account := named[*corev1.ServiceAccount](i, portal.Spec.Template.Spec.ServiceAccountName)
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: portal.Namespace}}
		if !slices.Equal(binding.Subjects, want) || binding.RoleRef.Name != one[*rbacv1.ClusterRole](i).Name {
			i.Errorf("the role %s is bound to %v", binding.RoleRef.Name, binding.Subjects)
		}
		if len(Of[*rbacv1.RoleBinding](i.all)) > 0 {
			i.Error("there are other bindings")
		}
		for _, rule := range one[*rbacv1.ClusterRole](i).Rules {
			if text := fmt.Sprint(rule); strings.Contains(text, "*") {
				i.Errorf("a rule is for everything: %s", text)
			}
		}
	})
}

// The portal meets Pod Security “restricted”; agents, which see their node, do
// not, and their namespace says so.
func TestPodSecurity(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	restricted := func(pod corev1.PodTemplateSpec) policy.AggregateCheckResult {
		latest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		return policy.AggregateCheckResults(checks.EvaluatePod(latest, &pod.ObjectMeta, &pod.Spec))
	}
	each(t, func(i installation) {
		pod := one[*appsv1.Deployment](i).Spec.Template
		if r := restricted(pod); !r.Allowed {
			i.Errorf("the portal's pods are not of the restricted kind: %s", r.ForbiddenDetail())
		}
		if c := pod.Spec.Containers[0].SecurityContext; !*c.ReadOnlyRootFilesystem {
			i.Error("the portal writes to its image")
		}
		for _, d := range Of[*appsv1.DaemonSet](i.all) {
			if restricted(d.Spec.Template).Allowed {
				i.Error("agents need no namespace of their own any more")
			}
			if *d.Spec.Template.Spec.AutomountServiceAccountToken {
				i.Error("agents have a token for the API server")
			}
		}
	})
	if ns := named[*corev1.Namespace](installation{t, rendered(t, "deploy/manifests-values.yaml")}, "weir"); ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("the portal's namespace has %v", ns.Labels)
	}
}

// Connections have the grace period of the pod to end.
func TestGrace(t *testing.T) {
	each(t, func(i installation) {
		pod := one[*appsv1.Deployment](i).Spec.Template.Spec
		const grace = 30 // s
		if settings := named[*corev1.ConfigMap](i, "weir").Data["weir.yaml"]; !strings.Contains(settings, "shutdown-grace: \"30s\"\n") {
			i.Errorf("the settings are\n%s", settings)
		}
		if pause := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds; pause <= 0 || pause+grace >= *pod.TerminationGracePeriodSeconds {
			i.Errorf("a pause of %d s and %d s to end in %d s", pause, grace, *pod.TerminationGracePeriodSeconds)
		}
	})
}

// Programs in the cluster reach the portal by the names of its service.
func TestHosts(t *testing.T) {
	each(t, func(i installation) {
		const own = "weir,weir.weir,weir.weir.svc,weir.weir.svc.cluster.local"
		if settings := named[*corev1.ConfigMap](i, "weir").Data["weir.yaml"]; !strings.Contains(settings, "hosts: \""+own+"\"\n") {
			i.Errorf("the settings are\n%s", settings)
		}
	})
	more := installation{t, rendered(t, "deploy/manifests-values.yaml", "settings.hosts=gpus.example.org")}
	if settings := named[*corev1.ConfigMap](more, "weir").Data["weir.yaml"]; !strings.Contains(settings, ".svc.cluster.local,gpus.example.org\"") {
		t.Errorf("with a name of one's own, the settings are\n%s", settings)
	}
}

func TestChoices(t *testing.T) {
	least := "deploy/testdata/least.yaml"
	count := func(values ...string) (n [5]int) {
		all := rendered(t, values...)
		return [5]int{len(Of[*policyv1.PodDisruptionBudget](all)), len(Of[*netv1.Ingress](all)), len(Of[*serviceMonitor](all)),
			len(Of[*appsv1.DaemonSet](all)), len(Of[*netv1.NetworkPolicy](all))}
	}
	for _, c := range []struct {
		values []string
		want   [5]int
	}{
		{[]string{least}, [5]int{1, 0, 0, 1, 1}},
		{[]string{least, "replicas=1", "agents.enabled=false"}, [5]int{0, 0, 0, 0, 1}},
		{[]string{"deploy/testdata/ingress.yaml", "networkPolicy.enabled=false"}, [5]int{1, 1, 1, 1, 0}},
	} {
		if got := count(c.values...); got != c.want {
			t.Errorf("%v: budgets, ingresses, monitors, agents, policies: %v, want %v", c.values, got, c.want)
		}
	}
	i := installation{t, rendered(t, "deploy/testdata/ingress.yaml")}
	ingress, monitor, portal := one[*netv1.Ingress](i), one[*serviceMonitor](i), named[*corev1.Service](i, "weir")
	hosts := ""
	for _, r := range ingress.Spec.Rules {
		to := r.HTTP.Paths[0].Backend.Service
		hosts += r.Host + " " + to.Name + ":" + to.Port.Name + " "
	}
	if hosts != "weir.example.org weir:http *.apps.example.org weir:http " {
		t.Errorf("the ingress leads %s", hosts)
	}
	selects(i, &monitor.Spec.Selector, portal.Labels)
	if c := monitor.Spec.Endpoints[0].Auth.Credentials; c.Name != "metrics" || c.Key != "token" {
		t.Errorf("Prometheus sends %v", c)
	}
	if s, _ := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector); s.Matches(labels.Set(named[*corev1.Service](i, "weir-agent").Labels)) {
		t.Error("Prometheus asks the agents' listener, too")
	}
	if monitor.Spec.Endpoints[0].Port != portal.Spec.Ports[0].Name || len(Of[*corev1.PersistentVolume](i.all)) != 0 {
		t.Errorf("Prometheus asks the port %s; %d volumes", monitor.Spec.Endpoints[0].Port, len(Of[*corev1.PersistentVolume](i.all)))
	}
}

// TestSecretFiles checks the files of secrets against the settings that read
// them.
func TestSecretFiles(t *testing.T) {
	i := installation{t, rendered(t, "deploy/testdata/ingress.yaml")}
	pod := named[*appsv1.Deployment](i, "weir").Spec.Template.Spec
	paths := map[string]string{}
	for _, v := range pod.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			for _, s := range v.Projected.Sources {
				if m.Name == v.Name && s.Secret != nil {
					paths[m.MountPath+"/"+s.Secret.Items[0].Path] = s.Secret.Name + "/" + s.Secret.Items[0].Key
				}
			}
		}
	}
	for name, secret := range map[string]string{"WEIR_SMTP_PASSWORD_FILE": "mail/password", "WEIR_OIDC_CLIENT_SECRET_FILE": "oidc/secret",
		"WEIR_METRICS_TOKEN_FILE": "metrics/token"} {
		value := ""
		for _, e := range pod.Containers[0].Env {
			if e.Name == name {
				value = e.Value
			}
		}
		if paths[value] != secret {
			t.Errorf("%s is %q, where %q stands", name, value, paths[value])
		}
	}
}

// The job that makes backups has the settings and secrets of the portal, writes to its claim
// only, meets Pod Security “restricted”, and no service leads to it.
func TestBackup(t *testing.T) {
	i := installation{t, rendered(t, "deploy/testdata/ingress.yaml", "backup.enabled=true", "backup.existingClaim=backups", "backup.files=true")}
	portal, job := one[*appsv1.Deployment](i).Spec.Template, one[*batchv1.CronJob](i)
	pod := job.Spec.JobTemplate.Spec.Template
	checkPods(i, &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "weir-backup"}}, pod)
	for _, s := range Of[*corev1.Service](i.all) {
		if labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the service %s leads to it", s.Name)
		}
	}
	container := pod.Spec.Containers[0]
	if args := strings.Join(container.Args, " "); args != "admin backup --output=/backup --keep=14 --files" {
		t.Errorf("it runs %s", args)
	}
	for _, e := range portal.Spec.Containers[0].Env {
		same := func(other corev1.EnvVar) bool { return reflect.DeepEqual(e, other) }
		if e.Name != "GOMEMLIMIT" && !slices.ContainsFunc(container.Env, same) {
			t.Errorf("it has no %s", e.Name)
		}
	}
	for _, m := range container.VolumeMounts {
		if writes := !m.ReadOnly; writes != (m.Name == "backup" || m.Name == "tmp") {
			t.Errorf("it writes to %s: %v", m.Name, writes)
		}
	}
	checks, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	latest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if r := policy.AggregateCheckResults(checks.EvaluatePod(latest, &pod.ObjectMeta, &pod.Spec)); !r.Allowed {
		t.Errorf("its pods are not of the restricted kind: %s", r.ForbiddenDetail())
	}
	if jobs := Of[*batchv1.CronJob](rendered(t, "deploy/testdata/least.yaml")); len(jobs) > 0 {
		t.Errorf("%d jobs by default", len(jobs))
	}
}

func TestStorage(t *testing.T) {
	for values, test := range map[string]struct {
		set    string
		class  string // of the claim
		volume bool   // of its own
		path   string // that the volume shows
	}{
		"least":  {"storage.nfs.path=/weir", "", true, "/weir"},
		"class":  {"storage.size=2Ti", "csi-nfs", false, ""},
		"nvidia": {"storage.nfs.portalPath=/weir-all", "", true, "/weir-all"},
	} {
		i := installation{t, rendered(t, "deploy/testdata/"+values+".yaml", test.set)}
		claim := one[*corev1.PersistentVolumeClaim](i)
		if *claim.Spec.StorageClassName != test.class || (claim.Spec.VolumeName != "") != test.volume || claim.Spec.AccessModes[0] != corev1.ReadWriteMany {
			t.Errorf("%s: claim %+v", values, claim.Spec)
		}
		volumes := Of[*corev1.PersistentVolume](i.all)
		if (len(volumes) == 1) != test.volume || test.volume && (volumes[0].Name != claim.Spec.VolumeName || volumes[0].Spec.ClaimRef.Name != claim.Name || volumes[0].Spec.NFS.Path != test.path) {
			t.Errorf("%s: volumes %+v", values, volumes)
		}
	}
	if claims := Of[*corev1.PersistentVolumeClaim](rendered(t, "deploy/testdata/claim.yaml")); len(claims) > 0 {
		t.Errorf("beside the existing claim: %+v", claims)
	}
}

func TestWrongValues(t *testing.T) {
	least := "deploy/testdata/least.yaml"
	for wrong, says := range map[string]string{
		"replicas=0": "/replicas", "user=0": "/user", "replica=2": "'replica'", "image.pullPolicy=always": "/image/pullPolicy",
		"externalURL=weir.example.org": "/externalURL", "appsDomain=https://apps": "/appsDomain", "instance=Weir": "/instance",
		"gpu.backend=amd": "/gpu/backend", "settings.listen=:80": "'listen'", "settings.database-url=postgres://x": "'database-url'",
		"settings.Session=1": "'Session'", "secretSettings.listen.key=a": "'listen'", "secretSettings.a.key=a": "'secret'", "secretFiles.authority-file.key=a": "'authority-file'", "secretFiles.listen.key=a": "'listen'", "service.type=ExternalName": "/service/type", "networkPolicy.ports={0}": "/networkPolicy/ports",
		"serviceMonitor.enabled=true": "secretFiles.metrics-token-file", "serviceMonitor.interval=often": "/serviceMonitor/interval", "agents.stateDir=state": "/agents/stateDir", "agents.machineIDFile=machine-id": "/agents/machineIDFile", "storage.nfs.path=weir": "/storage/nfs/path",
		"database.url=postgres://x": "'url'", "storage.directory=/srv/weir": "storage.directory", "storage.storageClass=fast": "storage.storageClass", "storage.size=much": "/storage/size", "storage.nfs.server=": "storage.nfs.server",
		"backup.enabled=true": "backup.existingClaim", "backup.keep=0": "/backup/keep", "backup.schedule=at night": "/backup/schedule",
		"ingress.enabled=true": "ingress.enabled needs", "agents.namespace=weir": "agents.namespace is",
	} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			if _, err := Render(context.Background(), Release, least, wrong); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: want %q in %v", wrong, says, err)
			}
		})
	}
}
