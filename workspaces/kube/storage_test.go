package kube

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"weir/models"
	"weir/workspaces/runtime"
)

func TestParseStorage(t *testing.T) {
	for text, want := range map[string]Storage{
		"nfs://nfs.example.org/weir":  {NFSServer: "nfs.example.org", NFSPath: "/weir"},
		"nfs://nfs.example.org/a/b/":  {NFSServer: "nfs.example.org", NFSPath: "/a/b"},
		"nfs://nfs.example.org":       {NFSServer: "nfs.example.org", NFSPath: "/"},
		"10.0.0.9:/weir":              {NFSServer: "10.0.0.9", NFSPath: "/weir"},
		"NAS-2:/":                     {NFSServer: "NAS-2", NFSPath: "/"},
		"[fd00::9]:/weir":             {NFSServer: "fd00::9", NFSPath: "/weir"},
		"nfs://[fd00::9]/weir":        {NFSServer: "fd00::9", NFSPath: "/weir"},
		"/srv/weir/":                  {HostPath: "/srv/weir"},
		"/srv/nfs:/weir":              {HostPath: "/srv/nfs:/weir"},
		"claim:weir/weir-shared":      {Claim: types.NamespacedName{Namespace: "weir", Name: "weir-shared"}},
		"claim:weir/shared.models.v1": {Claim: types.NamespacedName{Namespace: "weir", Name: "shared.models.v1"}},
	} {
		if s, err := ParseStorage(text); err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

func TestStorageThatIsNone(t *testing.T) {
	for text, why := range map[string]string{
		"":                         "none of these forms",
		"weir":                     "none of these forms",
		"srv/weir":                 "none of these forms",
		"./weir":                   "none of these forms",
		"10.0.0.9:weir":            "none of these forms",
		"ceph://mon/weir":          "ceph:// is not supported",
		"s3://bucket/weir":         "s3:// is not supported",
		"file:///srv/weir":         "file:// is not supported",
		"nfs:///weir":              "server is missing",
		"nfs://":                   "server is missing",
		":/weir":                   "server is missing",
		"nfs://nfs:2049/weir":      "port is a mount option",
		"fd00::9:/weir":            "in brackets",
		"nfs://fd00::9/weir":       "in brackets",
		"[10.0.0.9]:/weir":         "not an IPv6 address",
		"[fd00::9:/weir":           "not an IPv6 address",
		"nfs://user@nfs/weir":      "not the name or address",
		"a b:/weir":                "not the name or address",
		"10.0.0.9:/weir/../etc":    "not absolute without",
		"10.0.0.9://weir":          "not supported",
		"/srv//weir":               "not absolute without",
		"/srv/../etc":              "not absolute without",
		"/":                        "root of the nodes",
		"/srv/we ir":               "white space",
		"/srv/we'ir":               "quotes",
		"nfs://nfs/we\nir":         "white space",
		"claim:shared":             "namespace and its name",
		"claim:/shared":            "namespace and its name",
		"claim:weir/Shared":        "namespace and its name",
		"claim:weir/shared/models": "namespace and its name",
	} {
		if s, err := ParseStorage(text); err == nil || !strings.Contains(err.Error(), why) || !reflect.DeepEqual(s, Storage{}) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
}

// volumesOf are the volumes of a project at a backend, by the name of their directory.
func volumesOf(t testing.TB, s Storage, project int64) map[string]corev1.PersistentVolume {
	t.Helper()
	c := config(t, func(c *Config) { c.Storage = s })
	p, err := c.projectObjects(project, Quota{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]corev1.PersistentVolume{}
	for i, d := range c.Directories(project) {
		v, claim := as[corev1.PersistentVolume](t, p.Volumes[i]), as[corev1.PersistentVolumeClaim](t, p.Claims[i])
		if v.Spec.ClaimRef.Name != claim.Name || v.Spec.ClaimRef.Namespace != claim.Namespace || v.Spec.AccessModes[0] != claim.Spec.AccessModes[0] {
			t.Errorf("the volume %+v does not bind to %+v", v.Spec, claim)
		}
		all[d.Name] = v
	}
	return all
}

func TestVolumesShowOneDirectory(t *testing.T) {
	csi := func(driver, handle string, attributes map[string]string) Storage {
		return Storage{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, VolumeAttributes: attributes,
			NodeStageSecretRef: &corev1.SecretReference{Namespace: "storage", Name: "key"}}}
	}
	for name, test := range map[string]struct {
		storage         Storage
		project, public corev1.PersistentVolumeSource
	}{
		"nfs": {Storage{NFSServer: "nfs", NFSPath: "/"},
			corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/notebook/7"}},
			corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/public_model", ReadOnly: true}}},
		"directory": {Storage{HostPath: "/srv/weir"},
			corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/weir/notebook/7", Type: new(corev1.HostPathDirectory)}},
			corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/srv/weir/public_model"}}},
		"csi-driver-nfs": {csi("nfs.csi.k8s.io", "nfs#weir", map[string]string{"server": "nfs", "share": "/weir", "subDir": "pvc-1"}),
			csiSource("nfs.csi.k8s.io", "nfs#weir#/notebook/7", false, map[string]string{"server": "nfs", "share": "/weir", "subDir": "pvc-1/notebook/7"}),
			csiSource("nfs.csi.k8s.io", "nfs#weir#/public_model", true, map[string]string{"server": "nfs", "share": "/weir", "subDir": "pvc-1/public_model"})},
		"ceph-csi": {csi("cephfs.csi.ceph.com", "weir", map[string]string{"fsName": "fs", "staticVolume": "true", "rootPath": "/weir"}),
			csiSource("cephfs.csi.ceph.com", "weir#/notebook/7", false, map[string]string{"fsName": "fs", "staticVolume": "true", "rootPath": "/weir/notebook/7"}),
			csiSource("cephfs.csi.ceph.com", "weir#/public_model", true, map[string]string{"fsName": "fs", "staticVolume": "true", "rootPath": "/weir/public_model"})},
		"efs": {csi("efs.csi.aws.com", "fs-1::fsap-2", nil),
			csiSource("efs.csi.aws.com", "fs-1:/notebook/7:fsap-2", false, nil), csiSource("efs.csi.aws.com", "fs-1:/public_model:fsap-2", true, nil)},
		"efs, a path": {csi("efs.csi.aws.com", "fs-1:/weir", nil),
			csiSource("efs.csi.aws.com", "fs-1:/weir/notebook/7", false, nil), csiSource("efs.csi.aws.com", "fs-1:/weir/public_model", true, nil)},
	} {
		all := volumesOf(t, test.storage, 7)
		for name, want := range map[string]corev1.PersistentVolumeSource{"project": test.project, "public-model": test.public} {
			if got := all[name].Spec.PersistentVolumeSource; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, not %+v", name, got, want)
			}
		}
		if options := all["public-model"].Spec.MountOptions; options[len(options)-1] != "ro" {
			t.Errorf("%s: a pod of somebody else writes the public directory: %v", name, options)
		}
		if all["project"].Spec.AccessModes[0] != corev1.ReadWriteMany || all["public-model"].Spec.AccessModes[0] != corev1.ReadOnlyMany {
			t.Errorf("%s: access modes %v, %v", name, all["project"].Spec.AccessModes, all["public-model"].Spec.AccessModes)
		}
	}
}

func csiSource(driver, handle string, readOnly bool, attributes map[string]string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, ReadOnly: readOnly,
		VolumeAttributes: attributes, NodeStageSecretRef: &corev1.SecretReference{Namespace: "storage", Name: "key"}}}
}

// Whatever the projects are, the writable volume of one is no part of that of another.
func TestNoVolumeShowsAnothersFiles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		mine, others := rapid.Int64Range(1, 1e12).Draw(r, "project"), rapid.Int64Range(1, 1e12).Draw(r, "another project")
		if mine == others {
			return
		}
		s := Storage{NFSServer: "nfs", NFSPath: rapid.SampledFrom([]string{"/", "/weir", "/notebook/1"}).Draw(r, "export")}
		at := volumesOf(t, s, mine)["project"].Spec.NFS.Path + "/"
		for name, v := range volumesOf(t, s, others) {
			if other := v.Spec.NFS.Path + "/"; strings.HasPrefix(at, other) || strings.HasPrefix(other, at) {
				r.Errorf("%s shows %s and %s", name, at, other)
			}
		}
	})
}

// An earlier backend's volumes are not changed: the new ones have other names.
func TestBackendsHaveTheirOwnNames(t *testing.T) {
	seen := map[string]Storage{}
	for _, s := range []Storage{{NFSServer: "a", NFSPath: "/weir"}, {NFSServer: "b", NFSPath: "/weir"}, {NFSServer: "a", NFSPath: "/w"}, {HostPath: "/weir"},
		{CSI: &corev1.CSIPersistentVolumeSource{Driver: "nfs.csi.k8s.io", VolumeHandle: "a"}}, {CSI: &corev1.CSIPersistentVolumeSource{Driver: "nfs.csi.k8s.io", VolumeHandle: "b"}}} {
		for _, v := range volumesOf(t, s, 7) {
			if other, ok := seen[v.Name]; ok {
				t.Errorf("%s is at %+v and %+v", v.Name, s, other)
			}
			seen[v.Name] = s
		}
	}
	faster := Storage{NFSServer: "a", NFSPath: "/weir", MountOptions: []string{"nconnect=8"}}
	if v := volumesOf(t, faster, 7)["project"]; seen[v.Name].NFSServer != "a" {
		t.Errorf("another mount option makes a volume %s", v.Name)
	}
}

// A claim stands for the backend of its volume.
func TestBackendOfAVolume(t *testing.T) {
	for name, c := range map[string]struct {
		source corev1.PersistentVolumeSource
		want   Storage
		err    string
	}{
		"nfs":       {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/weir"}}, Storage{NFSServer: "nfs", NFSPath: "/weir"}, ""},
		"host path": {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}, Storage{}, "a directory of a node"},
		"local":     {corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/srv"}}, Storage{}, "a directory of a node"},
		"block": {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "block.example.org", VolumeHandle: "1"}},
			Storage{}, "block.example.org cannot show one directory"},
		"ceph": {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "cephfs.csi.ceph.com", VolumeHandle: "1"}},
			Storage{}, "only static volumes"},
		"disk": {corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}, Storage{}, "neither NFS nor CSI"},
	} {
		v := corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: c.source, MountOptions: []string{"hard"}}}
		s, err := storageOf(v)
		if err == nil {
			_, err = s.volume("/notebook/7", false)
		}
		c.want.MountOptions = []string{"hard"}
		if c.err == "" && (err != nil || !reflect.DeepEqual(s, c.want)) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// Files belong to members and projects: so do the pods that write them.
func TestUserOfThePod(t *testing.T) {
	c := config(t, func(c *Config) { c.UID, c.MPSDir = 1000, "/run/weir/mps" })
	for name, test := range map[string]struct {
		uid, gid   int64
		gpus       []runtime.GPU
		user, team int64
	}{
		"shared":   {0, 0, nil, 1000, 1000},
		"its own":  {1900000009, 1900000007, []runtime.GPU{share(50, models.EnforcedAdvisory)}, 1900000009, 1900000007},
		"with MPS": {1900000009, 1900000007, []runtime.GPU{share(50, models.EnforcedMPS)}, 1000, 1900000007},
	} {
		s := spec()
		s.UID, s.GID, s.GPUs = test.uid, test.gid, test.gpus
		if is := podOf(t, c, s).Spec.SecurityContext; *is.RunAsUser != test.user || *is.RunAsGroup != test.team || !*is.RunAsNonRoot {
			t.Errorf("%s: it runs as %d:%d", name, *is.RunAsUser, *is.RunAsGroup)
		}
	}
}
