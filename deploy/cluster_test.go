//go:build cluster

package deploy

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir/tools/cluster"
)

const patience = 2 * time.Minute

// TestCluster tests the chart on a real API server and kubelet.
func TestCluster(t *testing.T) {
	k, err := cluster.Open(t.Context(), cluster.Options{Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the manifests are applied", func(t *testing.T) { testManifests(t, admin) })
	root := sharedRoot(t)
	values := []string{"storage.directory=" + root, "appsDomain=apps.example.org", "settings.kube-ingress-service=weir.weir.svc:80"}
	portal, made, err := Portal(within(t), admin, Release, values...)
	if err != nil {
		t.Fatal(err)
	}
	defer remove(t, admin, made...)
	t.Run("the account is kept to its projects", func(t *testing.T) { testAdmission(t, portal, root) })
	t.Run("it has every right that it needs, and no other", func(t *testing.T) { testRights(t, k, portal, root, made) })
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// sharedRoot is a directory that the node can mount.
func sharedRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-shared-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func clientOf(t *testing.T, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// warnings collects warnings of the API server.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// The committed manifests can be applied twice; the portal's pods are admitted
// to their namespace; and everything can be deleted.
func testManifests(t *testing.T, admin *rest.Config) {
	warned := &warnings{}
	c := rest.CopyConfig(admin)
	c.WarningHandler = warned
	applier, err := NewApplier(c)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Objects(Manifests)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	for range 2 {
		if err := applier.Apply(ctx, all...); err != nil {
			t.Fatal(err)
		}
	}
	// Of another storage, the volume and the claim are others: neither can be changed.
	moved := installation{t, rendered(t, "deploy/manifests-values.yaml", "storage.nfs.path=/moved")}
	storage := []runtime.Object{one[*corev1.PersistentVolume](moved), one[*corev1.PersistentVolumeClaim](moved)}
	if err := applier.Apply(ctx, storage...); err != nil {
		t.Error(err)
	}
	client := clientOf(t, admin)
	want := *Of[*appsv1.Deployment](all)[0].Spec.Replicas
	if err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("weir").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=weir"})
		return err == nil && len(pods.Items) == int(want), err
	}); err != nil {
		t.Errorf("%d pods of the portal are not let in: %v", want, err)
	}
	if err := applier.Delete(within(t), append(all, storage...)...); err != nil {
		t.Error(err)
	}
	for _, values := range []string{"class", "claim", "hami", "one"} {
		policies := Of[*admissionv1.ValidatingAdmissionPolicy](rendered(t, "deploy/testdata/"+values+".yaml", "admissionPolicy.enabled=true", "serviceMonitor.enabled=false"))
		_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policies[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
	if len(warned.all) > 0 {
		t.Errorf("the API server warns: %s", strings.Join(warned.all, "; "))
	}
}

func remove(t *testing.T, admin *rest.Config, all ...runtime.Object) {
	applier, err := NewApplier(admin)
	if err == nil {
		err = applier.Delete(within(t), all...)
	}
	if err != nil {
		t.Error(err)
	}
}

// RBAC permits the account to write in every namespace; the admission policy
// does not.
func testAdmission(t *testing.T, portal *rest.Config, root string) {
	client, ctx := clientOf(t, portal), within(t)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	space := func(name, level string) error {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}, dry)
		return err
	}
	volume := func(name, path, namespace string, options ...string) error {
		_, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, MountOptions: options,
				ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: "shared"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}}, dry)
		return err
	}
	settings := func(namespace string) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, dry)
		return err
	}
	// The policy is effective a moment after it was applied.
	if err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (bool, error) { return apierrors.IsInvalid(settings("default")), nil }); err != nil {
		t.Fatalf("a project's portal writes in the namespace default: %v", settings("default"))
	}
	for what, c := range map[string]struct {
		err error
		ok  bool
	}{
		"a namespace of a project":               {space("weir-p-9", "restricted"), true},
		"another namespace":                      {space("other", "restricted"), false},
		"a project's namespace that is not safe": {space("weir-p-9", "privileged"), false},
		"a volume of a project":                  {volume("weir-p-9-shared", root+"/notebook/9", "weir-p-9"), true},
		"a volume of the public models":          {volume("weir-p-9-shared", root+"/public_model", "weir-p-9", "ro"), true},
		"a writable volume of the public models": {volume("weir-p-9-shared", root+"/public_model", "weir-p-9"), false},
		"a volume of all projects":               {volume("weir-p-9-shared", root, "weir-p-9"), false},
		"a volume of another project":            {volume("weir-p-9-shared", root+"/notebook/8", "weir-p-9"), false},
		"a volume for another namespace":         {volume("weir-p-9-shared", root+"/notebook/9", "default"), false},
		"a volume to the node's root":            {volume("weir-p-9-shared", "/", "weir-p-9"), false},
		"a volume of no project":                 {volume("mine", root+"/notebook/9", "weir-p-9"), false},
		"an object in the portal's namespace":    {settings("weir"), false},
	} {
		if (c.err == nil) != c.ok {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}
