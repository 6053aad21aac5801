package cluster

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"weir/tools/cluster/image"
)

// notebook is a pod like a workspace's: Jupyter without root, with a read-only
// root file system, one read-only and one writable directory.
func notebook(name, shared string) map[string]any {
	const script = `echo kept > rw/written
if touch ro/refused; then echo ro can be written > rw/wrong; fi
exec jupyter-notebook --ip=0.0.0.0 --port=8888 --no-browser`
	mount := func(volume, path, sub string, readOnly bool) map[string]any {
		return map[string]any{"name": volume, "mountPath": path, "subPath": sub, "readOnly": readOnly}
	}
	return map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
			// The end of the pod is not tested here.
			"terminationGracePeriodSeconds": 1,
			"automountServiceAccountToken":  false,
			"containers": []any{map[string]any{
				"name": "notebook", "image": image.JupyterName, "imagePullPolicy": "Never",
				"command": []string{"sh", "-c", script},
				"securityContext": map[string]any{"readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
					"capabilities": map[string]any{"drop": []string{"ALL"}}},
				"volumeMounts": []any{mount("home", "/home/jovyan", "", false), mount("tmp", "/tmp", "", false),
					mount("shared", "/home/jovyan/rw", "rw", false), mount("shared", "/home/jovyan/ro", "ro", true)},
			}},
			"volumes": []any{
				map[string]any{"name": "home", "emptyDir": map[string]any{}},
				map[string]any{"name": "tmp", "emptyDir": map[string]any{}},
				map[string]any{"name": "shared", "hostPath": map[string]any{"path": shared, "type": "Directory"}},
			},
		},
	}
}

// sharedDirectory creates the directory that the pods mount.
func sharedDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"ro", "rw"} {
		path := filepath.Join(dir, sub)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, image.JupyterUser, image.JupyterUser); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A real kubelet runs Jupyter. Without root the test checks the refusal.
func TestNode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("pods run only for root: here it is checked that the others are told so")
		if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "needs root") {
			t.Errorf("a node without root: %v", err)
		}
		return
	}
	c := start(t, Options{})
	shared := sharedDirectory(t)
	do(t, c, http.MethodPost, "/api/v1/namespaces/default/pods", notebook("first", shared), nil)
	p := waitRunning(t, c, "first")
	if p.Spec.NodeName != c.Node {
		t.Errorf("the pod is on %q, not on %q", p.Spec.NodeName, c.Node)
	}
	eventually(t, "Jupyter answers", func() bool { return answers(t, p.Status.PodIP) })
	checkShared(t, shared)

	do(t, c, http.MethodDelete, podPath("first"), nil, nil)
	eventually(t, "the pod is gone", func() bool {
		return apierrors.IsNotFound(c.Client().Do(t.Context(), http.MethodGet, podPath("first"), nil, nil))
	})
	if answers(t, p.Status.PodIP) {
		t.Error("the deleted pod answers")
	}

	// Stop ends running pods, and removes no files of the volume.
	do(t, c, http.MethodPost, "/api/v1/namespaces/default/pods", notebook("second", shared), nil)
	second := waitRunning(t, c, "second")
	eventually(t, "Jupyter answers", func() bool { return answers(t, second.Status.PodIP) })
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	checkGone(t, c.Dir())
	checkNodeGone(t, c)
	checkShared(t, shared)
}

// answers reports whether Jupyter responds at the pod's address.
func answers(t *testing.T, address string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/api", net.JoinHostPort(address, "8888")), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: readyTimeout / 150}).Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(string(text), "version")
}

// checkShared checks on the host what the pod could do.
func checkShared(t *testing.T, dir string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(dir, "rw", "written")); err != nil || string(text) != "kept\n" {
		t.Errorf("what the pod wrote: %q, %v", text, err)
	}
	for _, wrong := range []string{"rw/wrong", "ro/refused"} {
		if _, err := os.Stat(filepath.Join(dir, wrong)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", wrong, err)
		}
	}
}

// checkNodeGone checks that Stop has removed everything that only a node has.
func checkNodeGone(t *testing.T, c *Cluster) {
	t.Helper()
	if _, err := net.InterfaceByName(c.net.Bridge); err == nil {
		t.Errorf("the bridge %s is left", c.net.Bridge)
	}
	rules, err := exec.Command(findProgram("iptables"), "-w", "-t", "nat", "-S").CombinedOutput()
	if err == nil && strings.Contains(string(rules), c.net.Bridge) {
		t.Errorf("rules are left:\n%s", rules)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if left := mountsBelow(string(mounts), c.Dir()); len(left) > 0 {
		t.Errorf("mounts are left: %v", left)
	}
}
