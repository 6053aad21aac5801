//go:build cluster

package clustertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"weir/models"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
)

// claimsOf are the claims of a namespace, by the name of their directory.
func claimsOf(t *testing.T, admin *kubernetes.Clientset, ns string) map[string]corev1.PersistentVolumeClaim {
	t.Helper()
	list, err := admin.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]corev1.PersistentVolumeClaim{}
	for _, claim := range list.Items {
		all[claim.Name[:strings.LastIndexByte(claim.Name, '-')]] = claim
	}
	return all
}

// podWith is a pod that Weir did not make, with whole volumes of its namespace.
func podWith(name, text string, claims map[string]corev1.PersistentVolumeClaim) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(user)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "c", Image: harness.Image, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-c", text},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}}}
	for name, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/volumes/" + name})
	}
	return pod
}

// Whoever may make pods in a project's namespace gets the project's files, and can only
// read the public ones.
func TestVolumesShowTheProjectOnly(t *testing.T) {
	c := config(t)
	r, admin := open(t, c), administrator(t)
	start(t, r, script("exec sleep 600"))
	another := script("exec sleep 600")
	another.Workspace, another.Project = 2, other
	start(t, r, another)
	for _, name := range []string{"notebook/7/mine", "notebook/8/secret", "public_model/weights"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
		})
	}
	mine, foreign := claimsOf(t, admin, c.Prefix+"7"), claimsOf(t, admin, c.Prefix+"8")
	if len(mine) != len(layout(project)) {
		t.Fatalf("claims %v", mine)
	}
	pods := admin.CoreV1().Pods(c.Prefix + "7")
	text := "ls -R /volumes/*; touch /volumes/project/new && rm /volumes/project/new && echo project: written; touch /volumes/public-model/new || echo public: refused; echo end"
	if _, err := pods.Create(t.Context(), podWith("mine", text, mine), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var log string
	eventually(t, func() string { return "the pod prints " + log }, func() bool {
		b, err := pods.GetLogs("mine", &corev1.PodLogOptions{}).Do(t.Context()).Raw()
		// Before its start the API server or the kubelet does not know the pod.
		if err != nil && !apierrors.IsBadRequest(err) && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		log = string(b)
		return strings.Contains(log, "end\n")
	})
	for word, want := range map[string]bool{"mine\n": true, "weights\n": true, "secret": false, "project: written": true, "public: refused": true} {
		if strings.Contains(log, word) != want {
			t.Errorf("%q is printed: %t\n%s", word, !want, log)
		}
	}
	outside := podWith("outside", "true", mine)
	outside.Spec.Containers[0].VolumeMounts[0].SubPath = "../8"
	if _, err := pods.Create(t.Context(), outside, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a path out of the volume: %v", err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}, Spec: foreign["project"].Spec}
	if _, err := admin.CoreV1().PersistentVolumeClaims(c.Prefix+"7").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Create(t.Context(), podWith("stolen", "true", map[string]corev1.PersistentVolumeClaim{"project": *claim}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return "the volume of another project: no answer of the scheduler" }, func() bool {
		pod, err := pods.Get(t.Context(), "stolen", metav1.GetOptions{})
		if err != nil || pod.Spec.NodeName != "" {
			t.Fatalf("the volume of another project is claimed: %v", err)
		}
		return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable
	})
}

// copyShare copies the shared directories, as an administrator does with rsync.
func copyShare(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-moved-")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), makeLayout(dir), os.CopyFS(dir, os.DirFS(root)), makeLayout(dir))
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

// After a move of the storage, workspaces start at the new place; those that run keep the
// old one, and the way back is open.
func TestStorageIsMoved(t *testing.T) {
	share := share(t)
	name, err := filepath.Rel(root, share)
	if err != nil {
		t.Fatal(err)
	}
	moved := copyShare(t)
	for dir, place := range map[string]string{root: "old", moved: "new"} {
		if err := os.WriteFile(filepath.Join(dir, name, "place"), []byte(place+" place\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := config(t)
	at := func(dir string) *kube.Runtime {
		c.Storage = kube.Storage{HostPath: dir}
		return open(t, c)
	}
	reader := func(id int64, rest string) runtime.Spec {
		s := script("cat /home/jovyan/place; " + rest + "; exec sleep 600")
		s.Workspace, s.Mounts = id, []models.Mount{{Source: share, Target: "/home/jovyan"}}
		return s
	}
	prints := func(r *kube.Runtime, state runtime.State, text string) {
		t.Helper()
		until(t, r, state, "prints "+text, func(s runtime.Status) bool { return strings.Contains(s.LogTail, text) })
	}
	before := at(root)
	first := start(t, before, reader(1, "until [ -e /home/jovyan/go ]; do sleep 0.1; done; cat /home/jovyan/place"))
	prints(before, first, "old place\n")
	after := at(moved)
	prints(after, start(t, after, reader(2, "true")), "new place\n")
	if err := os.WriteFile(filepath.Join(share, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	prints(after, first, "old place\nold place\n")
	back := at(root)
	prints(back, start(t, back, reader(3, "true")), "old place\n")
	if err := os.RemoveAll(filepath.Join(moved, "notebook")); err != nil {
		t.Fatal(err)
	}
	missing := at(moved)
	until(t, missing, start(t, missing, reader(4, "true")), "cannot mount", says("The node cannot mount the shared directories"))
}

// A claim stands for the backend of its volume, whatever its class.
func TestStorageOfAClaim(t *testing.T) {
	c, admin := config(t), administrator(t)
	name, class := c.Instance, c.Instance
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Pi")}}}}
	c.Storage = kube.Storage{Claim: types.NamespacedName{Namespace: "default", Name: name}}
	if _, err := kube.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), "does not exist or is not bound") {
		t.Errorf("without the claim: %v", err)
	}
	volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{StorageClassName: class,
		AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, MountOptions: unreachable.MountOptions,
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: unreachable.NFSServer, Path: unreachable.NFSPath}}}}
	if _, err := admin.CoreV1().PersistentVolumes().Create(t.Context(), &volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	claims := admin.CoreV1().PersistentVolumeClaims("default")
	if _, err := claims.Create(t.Context(), &claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's is over
		if err := errors.Join(claims.Delete(ctx, name, metav1.DeleteOptions{}), admin.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() string { return "the claim is not bound" }, func() bool {
		found, err := claims.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && found.Status.Phase == corev1.ClaimBound
	})
	mountsNothing(t, c)
}

// unreachable is an NFS server that is not there.
var unreachable = kube.Storage{NFSServer: "127.0.0.1", NFSPath: "/no-such-export", MountOptions: []string{"nfsvers=4.2", "port=9", "soft", "retry=0"}}

// The volumes of an NFS server are accepted and bound; a node that cannot
// reach it says so to the member.
func TestNFS(t *testing.T) {
	c := config(t)
	c.Storage = unreachable
	mountsNothing(t, c)
}

// mountsNothing holds what a Runtime whose storage is unreachable makes of it.
func mountsNothing(t *testing.T, c kube.Config) {
	t.Helper()
	r, admin := open(t, c), administrator(t)
	s := script("exec sleep 600")
	s.Mounts = []models.Mount{{Source: root + "/public_model", Target: "/public_model", ReadOnly: true}}
	state := start(t, r, s)
	eventually(t, func() string { return "the claims are not bound" }, func() bool {
		claims := claimsOf(t, admin, c.Prefix+"7")
		return claims["project"].Status.Phase == corev1.ClaimBound && claims["public-model"].Status.Phase == corev1.ClaimBound
	})
	for name, path := range map[string]string{"project": "/no-such-export/notebook/7", "public-model": "/no-such-export/public_model"} {
		claim := claimsOf(t, admin, c.Prefix+"7")[name]
		volume, err := admin.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil || volume.Spec.NFS == nil || volume.Spec.NFS.Path != path || volume.Spec.MountOptions[0] != "nfsvers=4.2" {
			t.Errorf("volume %+v, %v", volume, err)
		}
	}
	until(t, r, state, "cannot mount", says("The node cannot mount the shared directories: MountVolume.SetUp failed"))
}
