package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir/deploy"
)

// eachChart runs a test on what the chart gives for each set of its tests'
// values.
func eachChart(t *testing.T, test func(t *testing.T, all []runtime.Object)) {
	sets, err := filepath.Glob("../../../deploy/testdata/*.yaml")
	if err != nil || len(sets) < 5 {
		t.Fatalf("%d sets of values, %v", len(sets), err)
	}
	for _, set := range sets {
		t.Run(strings.TrimSuffix(filepath.Base(set), ".yaml"), func(t *testing.T) {
			text, err := deploy.Render(t.Context(), deploy.Release, "deploy/testdata/"+filepath.Base(set), "serviceMonitor.enabled=false")
			if err != nil {
				t.Fatal(err)
			}
			all, err := deploy.Objects(text)
			if err != nil {
				t.Fatal(err)
			}
			test(t, all)
		})
	}
}

// environmentOf is a container's, with what is written in the chart; names of
// Weir's that are no setting, or not one of the command's, are errors.
func environmentOf(t *testing.T, c corev1.Container, mine func(setting) bool) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, v := range c.Env {
		known := slices.ContainsFunc(settings, func(s setting) bool { return s.env() == v.Name && mine(s) })
		if strings.HasPrefix(v.Name, "WEIR_") && v.Name != "WEIR_CONFIG" && !known {
			t.Errorf("the chart sets %s for “weir %s”, which has no such setting", v.Name, c.Args[0])
		}
		env[v.Name] = v.Value
	}
	return env
}

// mountedAt tells whether a path is, or is below, one of the mounts.
func mountedAt(c corev1.Container, path string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")
	})
}

// The portal understands what the chart tells it, and finds what it names.
func TestChartsPortal(t *testing.T) {
	eachChart(t, func(t *testing.T, all []runtime.Object) {
		portal := deploy.Of[*appsv1.Deployment](all)[0]
		container := portal.Spec.Template.Spec.Containers[0]
		env := environmentOf(t, container, func(s setting) bool { return !s.notServe })
		env["WEIR_DATABASE_URL"] = "postgres://weir:secret@db/weir"
		var settings *corev1.ConfigMap
		for _, m := range deploy.Of[*corev1.ConfigMap](all) {
			settings = m
		}
		if !mountedAt(container, env["WEIR_CONFIG"]) || settings.Data[filepath.Base(env["WEIR_CONFIG"])] == "" {
			t.Fatalf("%s is not there", env["WEIR_CONFIG"])
		}
		env["WEIR_CONFIG"] = writeConfig(t, settings.Data[filepath.Base(env["WEIR_CONFIG"])])
		for name, path := range env {
			if strings.HasPrefix(path, "/etc/weir/secrets/") {
				if !mountedAt(container, path) {
					t.Errorf("nothing is mounted at %s", path)
				}
				env[name] = writeConfig(t, "a secret of some length")
			}
		}
		c, err := load(t, env, nil)
		if err != nil {
			t.Fatal(err)
		}
		if inside, err := load(t, env, nil, ForStore...); err != nil || inside.DatabaseURL != c.DatabaseURL { // kubectl exec … weir admin
			t.Errorf("a command inside the pod: %v", err)
		}
		for _, path := range []string{c.DataDir, c.SharedDir, c.AuthorityFile} {
			if !mountedAt(container, path) {
				t.Errorf("nothing is mounted at %s", path)
			}
		}
		checkChartsPortal(t, c, portal, all)
	})
}

func checkChartsPortal(t *testing.T, c Config, portal *appsv1.Deployment, all []runtime.Object) {
	pod := portal.Spec.Template.Spec
	if c.Runtime != "kube" || c.Kube.Prefix != c.Kube.Instance+"-p-" || c.Kube.Portal.NamespaceLabels["kubernetes.io/metadata.name"] != portal.Namespace {
		t.Errorf("the cluster's settings are %+v", c.Kube)
	}
	if int64(c.SandboxUID) != *pod.SecurityContext.RunAsUser {
		t.Errorf("workspaces run as %d, the portal as %d: one could not write what is the other's", c.SandboxUID, *pod.SecurityContext.RunAsUser)
	}
	if ports := pod.Containers[0].Ports; c.Listen != ":8080" || ports[0].ContainerPort != 8080 || c.AgentsListen != ":8443" || ports[1].ContainerPort != 8443 {
		t.Errorf("it listens on %s and %s, and its ports are %v", c.Listen, c.AgentsListen, ports)
	}
	if s := c.Kube.Storage; s.Claim.Name != "" && (s.Claim.Namespace != portal.Namespace || s.Claim.Name != pod.Volumes[len(pod.Volumes)-1].PersistentVolumeClaim.ClaimName) {
		t.Errorf("workspaces mount parts of the claim %s, and the portal %+v", s.Claim, pod.Volumes)
	}
	for _, v := range deploy.Of[*corev1.PersistentVolume](all) {
		nfs, host := v.Spec.NFS, v.Spec.HostPath
		if s := c.Kube.Storage; nfs != nil && (nfs.Server != s.NFSServer || nfs.Path != s.NFSPath) || host != nil && host.Path != s.HostPath {
			t.Errorf("workspaces mount %+v, the portal %+v", s, v.Spec.PersistentVolumeSource)
		}
	}
	agents := deploy.Of[*appsv1.DaemonSet](all)
	if account := ""; len(agents) > 0 {
		account = agents[0].Namespace + "/" + agents[0].Spec.Template.Spec.ServiceAccountName
		if c.KubeAgents != account {
			t.Errorf("the portal takes agents that run as %q, and they run as %q", c.KubeAgents, account)
		}
	} else if c.KubeAgents != "" {
		t.Errorf("the portal takes agents that run as %q, and there are none", c.KubeAgents)
	}
	for name, needed := range map[string]bool{"tokenreviews": c.KubeAgents != "", "ingresses": c.Kube.Ingress.Service != ""} {
		has := slices.ContainsFunc(deploy.Of[*rbacv1.ClusterRole](all)[0].Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, name) })
		if has != needed {
			t.Errorf("the right to %s is given: %t; it is needed: %t", name, has, needed)
		}
	}
}

// The agents understand what the chart tells them, and find the portal.
func TestChartsAgents(t *testing.T) {
	seen := 0
	eachChart(t, func(t *testing.T, all []runtime.Object) {
		for _, set := range deploy.Of[*appsv1.DaemonSet](all) {
			seen++
			container := set.Spec.Template.Spec.Containers[0]
			env := environmentOf(t, container, func(s setting) bool { return slices.Contains(ForAgent, s.name) })
			c, err := load(t, env, nil, ForAgent...)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{c.StateDir, c.DataDir, c.ClusterTokenFile, c.AuthorityCertificate, "/etc/machine-id"} {
				if !mountedAt(container, path) {
					t.Errorf("nothing is mounted at %s", path)
				}
			}
			for _, s := range deploy.Of[*corev1.Service](all) {
				if strings.HasPrefix(c.Server, "https://"+s.Name+"."+s.Namespace+".svc:") && s.Spec.Ports[0].Name == "agents" {
					return
				}
			}
			t.Errorf("%s is no service of the chart's", c.Server)
		}
	})
	if seen < 3 {
		t.Errorf("%d charts have agents", seen)
	}
}

// What the manifests name of the image is what the Dockerfile puts there.
func TestChartsImage(t *testing.T) {
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range []string{`ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/weir"]`, "USER 65532:65532"} {
		if !strings.Contains(string(text), needed) {
			t.Errorf("the Dockerfile has no line %s", needed)
		}
	}
}
