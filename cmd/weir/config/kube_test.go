package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir/workspaces/kube"
)

func TestKubeValues(t *testing.T) {
	long := strings.Repeat("a", 40)
	for _, c := range []struct {
		setting, text string
		ok            bool
	}{
		{"kube-storage", "nfs://nfs.example.org/weir", true}, {"kube-storage", "ceph://nfs.example.org/weir", false}, {"kube-storage", "srv/weir", false},
		{"kube-portal", "weir", true}, {"kube-portal", "10.0.0.0/8,fd00::/8", true}, {"kube-portal", "10.0.0.0/33", false},
		{"kube-instance", "gpu.pool_2", true}, {"kube-instance", "two words", false}, {"kube-instance", long + long, false},
		{"kube-prefix", "team-", true}, {"kube-prefix", "team", false}, {"kube-prefix", "Team-", false}, {"kube-prefix", "9-", false}, {"kube-prefix", long + "-", false},
		{"kube-pull-policy", "IfNotPresent", true}, {"kube-pull-policy", "always", false},
		{"kube-scratch", "512Mi", true}, {"kube-scratch", "1023Ki", false}, {"kube-scratch", "20GiB", false}, {"kube-scratch", "-1Gi", false},
		{"kube-cpu-share", "100", true}, {"kube-cpu-share", "0", false}, {"kube-cpu-share", "101", false}, {"kube-cpu-share", "half", false},
		{"kube-grace", "1s", true}, {"kube-grace", "0s", false}, {"kube-grace", "11m", false},
		{"kube-tolerations", "nvidia.com/gpu", true}, {"kube-tolerations", "=gpu", false}, {"kube-tolerations", "gpu:", false},
		{"kube-tolerations", "gpu:Never", false}, {"kube-tolerations", "gpu=a b:NoSchedule", false},
		{"kube-mps-dir", "/var/lib/weir/mps", true}, {"kube-mps-dir", "mps", false},
		{"kube-mount-options", "nfsvers=4.1, hard", true},
	} {
		_, err := load(t, nil, []string{"--" + c.setting, c.text})
		if (err == nil) != c.ok {
			t.Errorf("--%s %q: %v", c.setting, c.text, err)
		}
	}
}

func TestKubeSettings(t *testing.T) {
	c, err := load(t, nil, []string{"--runtime=kube", "--kube-instance=two", "--kube-prefix=two-p-", "--kube-storage=nfs://nfs/weir",
		"--kube-mount-options=nfsvers=4.1, hard", "--kube-portal=weir", "--kube-egress=10.1.0.0/16", "--kube-image=jupyter:1",
		"--kube-pull-policy=Never", "--kube-scratch=20Gi", "--kube-cpu-share=50", "--kube-grace=10s",
		"--kube-tolerations=nvidia.com/gpu:NoSchedule, dedicated=gpu", "--kube-gpu-backend=hami", "--kube-runtime-class=nvidia", "--kube-mps-dir=/mps",
		"--apps-domain=apps.example.org", "--kube-ingress-service=weir.weir.svc:80", "--kube-ingress-class=nginx",
		"--kube-ingress-tls-secret=apps-tls", "--kube-ingress-annotations=cert-manager.io/cluster-issuer=ca, Example=a=b"})
	if err != nil {
		t.Fatal(err)
	}
	want := kube.Config{
		Instance: "two", Prefix: "two-p-", Storage: kube.Storage{NFSServer: "nfs", NFSPath: "/weir", MountOptions: []string{"nfsvers=4.1", "hard"}},
		Portal: kube.Peer{NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "weir"}, PodLabels: map[string]string{"app.kubernetes.io/name": "weir"}},
		Egress: []kube.Egress{{CIDR: "10.1.0.0/16"}}, Image: "jupyter:1", PullPolicy: corev1.PullNever, Scratch: 20 << 10, CPUShare: 50,
		Grace: 10 * time.Second, GPUBackend: kube.BackendHAMi, RuntimeClass: "nvidia", MPSDir: "/mps",
		Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "gpu"}},
		Ingress: kube.Ingress{Service: "weir.weir.svc", Port: 80, Class: "nginx", Domain: "apps.example.org", TLSSecret: "apps-tls",
			Annotations: map[string]string{"cert-manager.io/cluster-issuer": "ca", "Example": "a=b"}},
	}
	if !reflect.DeepEqual(c.Kube, want) {
		t.Errorf("got  %+v\nwant %+v", c.Kube, want)
	}
}

func TestIngressIsSetWhole(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // "" is no error
	}{
		{[]string{"--kube-ingress-service=weir.weir.svc:80", "--apps-domain=apps.example.org"}, ""},
		{[]string{"--kube-ingress-service=weir.weir.svc:80"}, "apps-domain: "},
		{[]string{"--kube-ingress-service=weir.weir.svc", "--apps-domain=apps.example.org"}, "--kube-ingress-service: "},
		{[]string{"--kube-ingress-service=weir.weir.svc:0", "--apps-domain=apps.example.org"}, "--kube-ingress-service: "},
		{[]string{"--kube-ingress-class=nginx"}, "kube-ingress-service: "},
		{[]string{"--kube-ingress-annotations=a"}, "--kube-ingress-annotations: "},
		{[]string{"--kube-ingress-annotations=a b=c"}, "--kube-ingress-annotations: "},
	} {
		_, err := load(t, nil, c.args)
		var usage *UsageError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), "\n  "+c.want)) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
