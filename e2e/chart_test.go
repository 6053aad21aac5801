//go:build cluster

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	object "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"weir/deploy"
	"weir/models/store/storetest"
	"weir/tools/cluster"
)

// portalUser is whom the chart lets the portal and the workspaces run as.
const portalUser = 1000

// weirImage is an image with the program under test and nothing but the
// libraries that it needs, as an archive that Docker could have saved.
func weirImage(t *testing.T, name string) string {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"usr/local/bin/weir": bin}
	needs, err := exec.Command("ldd", bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(needs), -1) {
		files[strings.TrimPrefix(library, "/")] = library
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for to, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		addFile(t, w, to, 0o755, content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/usr/local/bin/weir"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}}}
	path := filepath.Join(t.TempDir(), "weir.tar")
	archive, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	w = tar.NewWriter(archive)
	addFile(t, w, "layer.tar", 0o644, layer.Bytes())
	addFile(t, w, "config.json", 0o644, mustJSON(t, config))
	addFile(t, w, "manifest.json", 0o644, mustJSON(t, []map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}}))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func addFile(t *testing.T, w *tar.Writer, name string, mode int64, content []byte) {
	t.Helper()
	err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// forward passes on what comes to an address of this machine; it returns the
// port. It ends with the test.
func forward(t *testing.T, host, network, to string) int {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go pass(from, network, to)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func pass(from net.Conn, network, to string) {
	defer from.Close()
	on, err := net.Dial(network, to)
	if err != nil {
		return
	}
	defer on.Close()
	go func() {
		_, _ = io.Copy(on, from)
		_ = on.Close()
	}()
	_, _ = io.Copy(from, on)
}

// installed is the chart in a cluster that has neither DNS nor kube-proxy:
// what its pods would find by these, they are told by their hosts file.
type installed struct {
	t      *testing.T
	k      *cluster.Cluster
	client *kubernetes.Clientset
	node   string // address at which pods reach this machine
	shared string
	state  string // of the agents
	id     string // file that identifies the node
}

func (i *installed) render(values ...string) []object.Object {
	i.t.Helper()
	text, err := deploy.Render(i.t.Context(), deploy.Release, append(values, "createNamespace=true", "image.repository=weir.local/weir", "image.tag=test",
		"storage.directory="+i.shared, "agents.stateDir="+i.state, "agents.machineIDFile="+i.id, "gpu.runtimeClass=", "agents.nodeSelector=null", "agents.simulateGPUs=h100:8")...)
	if err != nil {
		i.t.Fatal(err)
	}
	all, err := deploy.Objects(text)
	if err != nil {
		i.t.Fatal(err)
	}
	return all
}

// secrets are what an installation needs before: docs/how-to/kubernetes.md makes them
// in the same way.
func (i *installed) secrets(database string) []object.Object {
	i.t.Helper()
	file := filepath.Join(i.t.TempDir(), "authority.pem")
	code, certificate, stderr := weir(i.t, "", nil, "admin", "authority", "--authority-file", file)
	key, err := os.ReadFile(file)
	if code != 0 || err != nil {
		i.t.Fatalf("admin authority: exit code %d, %v\n%s", code, err, stderr)
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	kind := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	return []object.Object{
		&corev1.Secret{TypeMeta: kind("Secret"), ObjectMeta: named("weir", "weir-database"), Data: map[string][]byte{"url": []byte(database)}},
		&corev1.Secret{TypeMeta: kind("Secret"), ObjectMeta: named("weir", "weir-authority"), Data: map[string][]byte{"authority.pem": key}},
		&corev1.ConfigMap{TypeMeta: kind("ConfigMap"), ObjectMeta: named("weir-agents", "weir-authority"), Data: map[string]string{"authority.crt": certificate}},
	}
}

// pods awaits an application's pods, ready, and returns their addresses.
func (i *installed) pods(namespace, name string, count int) (addresses []string) {
	i.t.Helper()
	eventually(i.t, starting, func() string {
		list, err := i.client.CoreV1().Pods(namespace).List(i.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
		if err != nil {
			return err.Error()
		}
		addresses = nil
		for _, p := range list.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					addresses = append(addresses, p.Status.PodIP)
				}
			}
		}
		if len(addresses) != count {
			return fmt.Sprintf("%d of %d pods %s are ready", len(addresses), count, name)
		}
		return ""
	})
	return addresses
}

// log is what the pods of an application have said.
func (i *installed) log(namespace, name string) string {
	ctx, all := context.Background(), ""
	list, err := i.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
	if err != nil {
		return err.Error()
	}
	for _, p := range list.Items {
		text, err := i.client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		all += fmt.Sprintf("%s: %s %v\n%s\n", p.Name, p.Status.Phase, err, text)
	}
	return all
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	k, client := ownCluster(t)
	if err := k.Import(weirImage(t, "weir.local/weir:test")); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	// Pods run as others than this test.
	for dir, top := shared, filepath.Clean(os.TempDir()); dir != top && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(shared, portalUser, portalUser); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), k.Node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The agent writes until its cluster has ended, after the folders of the test.
	state, err := os.MkdirTemp(workDir, "agents")
	if err != nil {
		t.Fatal(err)
	}
	id := filepath.Join(workDir, "machine-id")
	if err := os.WriteFile(id, []byte(strings.Repeat("7e", 16)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	i := &installed{t: t, k: k, client: client, shared: shared, state: state, id: id}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			i.node = a.Address
		}
	}
	return i
}

// TestChartInCluster installs the chart as docs/how-to/kubernetes.md says, and works
// with it: two servers and an agent are pods, under the accounts and the Pod
// Security that the chart gives them.
//
// It gives its node an image, so that the cluster has to be its own.
func TestChartInCluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("left out: a cluster that KUBECONFIG names cannot be given an image, and one of its own needs root")
		return
	}
	i := newInstalled(t)
	admin, err := clientcmd.BuildConfigFromFlags("", i.k.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	applier, err := deploy.NewApplier(admin)
	if err != nil {
		t.Fatal(err)
	}
	database := storetest.Postgres(t)
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	postgres := forward(t, i.node, "unix", filepath.Join(at.Query().Get("host"), ".s.PGSQL.5432"))
	apiServer := forward(t, i.node, "tcp", strings.TrimPrefix(admin.Host, "https://"))

	all := i.render()
	portal, agents := deploy.Of[*appsv1.Deployment](all)[0], deploy.Of[*appsv1.DaemonSet](all)[0]
	pod := &portal.Spec.Template.Spec
	pod.HostAliases = []corev1.HostAlias{{IP: i.node, Hostnames: []string{"kubernetes.default.svc", "weir-workspaces.weir.svc"}}}
	pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "kubernetes.default.svc"},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: strconv.Itoa(apiServer)})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the portal:\n%s\nthe agent:\n%s", i.log("weir", "weir"), i.log("weir-agents", "weir-agent"))
		}
	})
	tcp := fmt.Sprintf("postgres://postgres@%s:%d%s?sslmode=disable", i.node, postgres, at.Path)
	for _, n := range deploy.Of[*corev1.Namespace](all) {
		if err := applier.Apply(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	later := slices.DeleteFunc(slices.Clone(all), func(o object.Object) bool { return o == object.Object(agents) })
	if err := applier.Apply(t.Context(), append(i.secrets(tcp), later...)...); err != nil {
		t.Fatal(err)
	}
	addresses := i.pods("weir", "weir", 2)
	if links := strings.Count(i.log("weir", "weir"), "/setup?token="); links != 2 {
		t.Errorf("%d servers show a link for the first administrator", links)
	}

	// By its address the agent finds the portal, and it is let in for its node.
	agents.Spec.Template.Spec.HostAliases = []corev1.HostAlias{{IP: addresses[0], Hostnames: []string{"weir-agent.weir.svc"}}}
	s := &server{t: t, opts: options{database: database}, dir: t.TempDir(), url: "http://localhost:8080",
		port: forward(t, "127.0.0.1", "tcp", addresses[1]+":8080"), out: &transcript{}, log: &transcript{}}
	s.admin()
	if err := applier.Apply(t.Context(), agents); err != nil {
		t.Fatal(err)
	}
	if p := s.awaitProvider("online", time.Time{}); p.Name != i.k.Node {
		t.Errorf("the provider is called %q", p.Name)
	}

	env := s.jupyterIn(i.k)
	team := s.team("speech", share, "ada")
	ada := team.Members[0]
	w := ada.await(ada.launch(team.Project, env, "plan"), "running", starting)
	nb := ada.open(w.ID)
	if got := executeCell(t, nb.client, nb.origin, "print(open('a.txt','w').write('42'))"); got != "2\n" {
		t.Errorf("the cell printed %q", got)
	}
	s.stopWorkspaces()
	eventually(t, gone, func() string { return leftIn(t, i.client, w.namespace()) })
	if leaders := strings.Count(i.log("weir", "weir"), "became leader"); leaders != 1 {
		t.Errorf("%d servers lead", leaders)
	}
}
