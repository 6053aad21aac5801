//go:build cluster

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir/models"
	"weir/tools/cluster"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

// patience is for the slowest single step, on a machine that does much else.
const patience = 2 * time.Minute

const user = 1000 // in whose name notebooks run

var (
	harness *cluster.Cluster
	root    string // the shared root, as the node and this process see it
	prefix  atomic.Int64
)

func TestMain(m *testing.M) {
	if os.Getenv("KUBECONFIG") == "" && os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "a kubelet needs root: run this as root, or set KUBECONFIG to a cluster whose node is this machine (see make cluster)")
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if root, err = os.MkdirTemp("", "weir-shared-"); err == nil {
		defer os.RemoveAll(root)
		err = errors.Join(os.Chmod(root, 0o755), makeLayout(root))
	}
	client := ""
	if err == nil && os.Getenv("KUBECONFIG") == "" {
		client, err = buildNFSClient()
		defer os.Remove(client)
	}
	if err == nil {
		harness, err = cluster.Open(context.Background(), cluster.Options{NFSClient: client, Log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := harness.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	defer stopFaulty()
	return m.Run()
}

// buildNFSClient compiles a mount.nfs for a kernel without an NFS client.
func buildNFSClient() (string, error) {
	f, err := os.CreateTemp("", "weir-mount.nfs-")
	if err != nil {
		return "", err
	}
	f.Close()
	out, err := exec.Command("gcc", "-O2", "-Wall", "-I/usr/include/fuse3", "-o", f.Name(), "testdata/mount_nfs.c", "-lfuse3", "-lnfs").CombinedOutput()
	if err != nil {
		return f.Name(), fmt.Errorf("compile an NFS client: %w\n%s", err, out)
	}
	return f.Name(), os.Chmod(f.Name(), 0o755)
}

// makeLayout makes the directories that a project can mount.
func makeLayout(root string) error {
	var errs []error
	for _, id := range []int64{project, other} {
		for _, d := range layout(id) {
			errs = append(errs, os.MkdirAll(root+d.Path, 0o755), os.Chown(root+d.Path, user, user))
		}
	}
	return errors.Join(errs...)
}

func layout(project int64) []kube.Directory {
	return []kube.Directory{{Name: "project", Path: fmt.Sprintf("/notebook/%d", project)}, {Name: "public-model", Path: "/public_model", ReadOnly: true}}
}

func access(t *testing.T) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", harness.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func administrator(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(access(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// config is a runtime's whose namespaces are those of one test.
func config(t *testing.T) kube.Config {
	name := fmt.Sprintf("t%d-%d", os.Getpid(), prefix.Add(1))
	return kube.Config{
		Rest: access(t), Instance: name, Prefix: name + "-p-", Image: harness.Image, PullPolicy: corev1.PullNever,
		Storage: kube.Storage{HostPath: root}, SharedRoot: root, Directories: layout, UID: user, Grace: 2 * time.Second,
		Portal: kube.Peer{CIDRs: []string{"127.0.0.1/32"}},
	}
}

func open(t *testing.T, c kube.Config) *kube.Runtime {
	t.Helper()
	r, err := kube.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), removeProjects(c)); err != nil {
			t.Error(err)
		}
	})
	return r
}

// removeProjects deletes the namespaces and the volumes of the projects.
func removeProjects(c kube.Config) error {
	client, err := kubernetes.NewForConfig(c.Rest)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, id := range []int{firstProject, project, other} {
		err = client.CoreV1().Namespaces().Delete(ctx, c.Prefix+strconv.Itoa(id), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return client.CoreV1().PersistentVolumes().DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + c.Instance})
}

// The projects of the tests; the first is that of a new database.
const firstProject, project, other = 1, 7, 8

func script(text string) runtime.Spec {
	return runtime.Spec{Workspace: 1, Generation: 1, Project: project, Member: 9, Token: "c0ffee" + strings.Repeat("1", 20),
		Command: []string{"sh", "-c", text}}
}

func notebook() runtime.Spec {
	s := script("")
	s.Command = []string{"jupyter-notebook"}
	return s
}

func share(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(root+layout(project)[0].Path, "share-")
	if err == nil {
		err = os.Chown(dir, user, user)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConformance(t *testing.T) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		c := config(t)
		return runtimetest.Harness{
			Runtime:     open(t, c),
			Reopen:      func(t *testing.T) runtime.Runtime { return open(t, c) },
			Notebook:    func(*testing.T) runtime.Spec { return notebook() },
			Script:      func(_ *testing.T, text string) runtime.Spec { return script(text) },
			Share:       share,
			StepTimeout: patience,
		}
	})
}

// start launches spec and sees to it that it ends with the test.
func start(t *testing.T, r *kube.Runtime, s runtime.Spec) runtime.State {
	t.Helper()
	var state runtime.State
	var err error
	eventually(t, func() string { return fmt.Sprintf("started: %v", err) }, func() bool {
		if state, err = r.Start(t.Context(), s); err != nil && models.KindOf(err) != models.KindUnavailable {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() {
		if err := r.Stop(context.Background(), state); err != nil {
			t.Error(err)
		}
	})
	return state
}

// until polls until the status is as wanted.
func until(t *testing.T, r *kube.Runtime, state runtime.State, want string, ok func(runtime.Status) bool) runtime.Status {
	t.Helper()
	var s runtime.Status
	eventually(t, func() string { return fmt.Sprintf("%s: %+v", want, s) }, func() bool {
		var err error
		if s, err = r.Poll(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		return ok(s)
	})
	return s
}

func is(phase runtime.Phase) func(runtime.Status) bool {
	return func(s runtime.Status) bool { return s.Phase == phase }
}

func says(words string) func(runtime.Status) bool {
	return func(s runtime.Status) bool { return strings.Contains(s.Message.String(), words) }
}

func eventually(t *testing.T, what func() string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what())
		}
	}
}

// left counts what there is of workspaces in a namespace.
func left(t *testing.T, admin *kubernetes.Clientset, ns string) int {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: "weir.dev/workspace"}
	pods, err := admin.CoreV1().Pods(ns).List(t.Context(), options)
	secrets, err2 := admin.CoreV1().Secrets(ns).List(t.Context(), options)
	services, err3 := admin.CoreV1().Services(ns).List(t.Context(), options)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return len(pods.Items) + len(secrets.Items) + len(services.Items)
}

// node is the one that runs pods.
func node(t *testing.T) string {
	t.Helper()
	if harness.Node != "" {
		return harness.Node
	}
	list, err := administrator(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("nodes: %v, %v", list, err)
	}
	return list.Items[0].Name
}

// counter counts requests to the API server, but for those that stay open.
type counter struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "" {
		c.mu.Lock()
		c.seen = append(c.seen, req.Method+" "+filepath.Base(filepath.Dir(req.URL.Path))+"/"+filepath.Base(req.URL.Path))
		c.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}

// take returns what was counted since the last time.
func (c *counter) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}
