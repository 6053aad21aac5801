package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Storage is the backend of the shared directories: exactly one of an NFS export, a
// directory on every node, a volume of a CSI driver, and a claim that is bound to one of
// these.
type Storage struct {
	NFSServer string // a name or an address, without brackets
	NFSPath   string
	HostPath  string // for a cluster of one machine
	CSI       *corev1.CSIPersistentVolumeSource
	Claim     types.NamespacedName

	MountOptions []string // of NFS and CSI; version 4.2 for NFS when empty, and those of a claim's volume
}

const storageForms = "nfs://SERVER/PATH, SERVER:/PATH, claim:NAMESPACE/NAME, or the absolute path of a directory on every node"

// ParseStorage parses nfs://SERVER/PATH, NFS's own SERVER:/PATH, claim:NAMESPACE/NAME,
// or an absolute path. An IPv6 address is in brackets.
func ParseStorage(text string) (s Storage, err error) {
	url, isURL := strings.CutPrefix(text, "nfs://")
	claim, isClaim := strings.CutPrefix(text, "claim:")
	server, export, isNFS := strings.Cut(text, ":/")
	switch {
	case isURL:
		server, export, _ = strings.Cut(url, "/")
		err = s.setNFS(server, "/"+export)
	case isClaim:
		err = s.setClaim(claim)
	case strings.HasPrefix(text, "/"):
		s.HostPath, err = cleanPath(text)
		if s.HostPath == "/" {
			err = errors.New("the root of the nodes cannot be shared")
		}
	case strings.HasPrefix(export, "/"):
		err = fmt.Errorf("%s:// is not supported", server)
	case isNFS:
		err = s.setNFS(server, "/"+export)
	default:
		err = errors.New("it is none of these forms")
	}
	if err != nil {
		return Storage{}, fmt.Errorf("%q must be %s: %w", text, storageForms, err)
	}
	return s, nil
}

func (s *Storage) setNFS(server, export string) (err error) {
	if s.NFSPath, err = cleanPath(export); err != nil {
		return err
	}
	s.NFSServer = server
	if inner, ok := strings.CutPrefix(server, "["); ok {
		s.NFSServer = strings.TrimSuffix(inner, "]")
		if at, err := netip.ParseAddr(s.NFSServer); err != nil || !at.Is6() || inner == s.NFSServer {
			return fmt.Errorf("%s is not an IPv6 address in brackets", server)
		}
		return nil
	}
	switch {
	case server == "":
		return errors.New("the server is missing")
	case strings.Count(server, ":") > 1:
		return errors.New("an IPv6 address must be in brackets")
	case strings.Contains(server, ":"):
		return errors.New("the port is a mount option, such as port=2049")
	case len(validation.IsDNS1123Subdomain(strings.ToLower(server))) > 0:
		return fmt.Errorf("%q is not the name or address of a server", server)
	}
	return nil
}

func (s *Storage) setClaim(text string) error {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errors.New("a claim needs its namespace and its name")
	}
	s.Claim = types.NamespacedName{Namespace: namespace, Name: name}
	return nil
}

// cleanPath removes a slash at the end, and refuses paths that would be resolved.
func cleanPath(p string) (string, error) {
	if p != "/" {
		p = strings.TrimSuffix(p, "/")
	}
	if !path.IsAbs(p) || path.Clean(p) != p {
		return "", fmt.Errorf("the path %q is not absolute without “.”, “..” and “//”", p)
	}
	if strings.ContainsFunc(p, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`"'\`, r)
	}) {
		return "", fmt.Errorf("the path %q has white space, quotes or control characters", p)
	}
	return p, nil
}

func (s Storage) check() error {
	set := 0
	for _, one := range []bool{s.NFSServer != "", s.HostPath != "", s.CSI != nil, s.Claim.Name != ""} {
		if one {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.New("the cluster's storage is one of an NFS server, a claim and a directory of every node: set one of them")
	case s.NFSServer != "" && !path.IsAbs(s.NFSPath):
		return fmt.Errorf("the NFS path %q is not absolute", s.NFSPath)
	case s.HostPath != "" && !path.IsAbs(s.HostPath):
		return fmt.Errorf("the storage directory %q is not absolute", s.HostPath)
	}
	return nil
}

// resolve replaces a claim by the backend of its volume, and checks that the backend can
// show a single directory.
func (s Storage) resolve(ctx context.Context, client kubernetes.Interface) (Storage, error) {
	if s.Claim.Name != "" {
		byName := func(name string) metav1.ListOptions {
			return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		}
		claims, err := client.CoreV1().PersistentVolumeClaims(s.Claim.Namespace).List(ctx, byName(s.Claim.Name))
		if err != nil {
			return s, err
		}
		if len(claims.Items) == 0 || claims.Items[0].Status.Phase != corev1.ClaimBound {
			return s, fmt.Errorf("the claim %s of the shared directories does not exist or is not bound", s.Claim)
		}
		volumes, err := client.CoreV1().PersistentVolumes().List(ctx, byName(claims.Items[0].Spec.VolumeName))
		if err != nil {
			return s, err
		}
		if len(volumes.Items) == 0 {
			return s, fmt.Errorf("the volume %s of the claim %s does not exist", claims.Items[0].Spec.VolumeName, s.Claim)
		}
		options := s.MountOptions
		if s, err = storageOf(volumes.Items[0]); err != nil {
			return s, err
		}
		if len(options) > 0 {
			s.MountOptions = options
		}
	}
	_, err := s.volume("/notebook/1", false)
	return s, err
}

// hash identifies the backend in the names of volumes and claims. Neither can be
// changed: those of an earlier backend are kept for the workspaces that use them.
func (s Storage) hash() string {
	id := fmt.Sprintf("nfs %q %q, host %q", s.NFSServer, s.NFSPath, s.HostPath)
	if s.CSI != nil {
		id = fmt.Sprintf("csi %q %q", s.CSI.Driver, s.CSI.VolumeHandle)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(id)))[:8]
}

// volume returns the spec of a volume that shows one directory of the storage, also to
// pods that were not made by Weir.
func (s Storage) volume(dir string, readOnly bool) (*core.PersistentVolumeSpecApplyConfiguration, error) {
	spec := core.PersistentVolumeSpec().WithAccessModes(accessMode(readOnly))
	if s.HostPath != "" {
		return spec, addHostPath(spec, path.Join(s.HostPath, dir), readOnly)
	}
	spec.WithMountOptions(s.MountOptions...)
	if len(s.MountOptions) == 0 && s.CSI == nil {
		spec.WithMountOptions("nfsvers=4.2", "hard", "noatime")
	}
	if readOnly { // of an NFS volume, the kubelet ignores the field readOnly
		spec.WithMountOptions("ro")
	}
	if s.CSI != nil {
		source, err := csiDirectory(*s.CSI, dir, readOnly)
		return spec.WithCSI(source), err
	}
	return spec.WithNFS(core.NFSVolumeSource().WithServer(s.NFSServer).WithPath(path.Join(s.NFSPath, dir)).WithReadOnly(readOnly)), nil
}

func accessMode(readOnly bool) corev1.PersistentVolumeAccessMode {
	if readOnly {
		return corev1.ReadOnlyMany
	}
	return corev1.ReadWriteMany
}

// claimVolume returns a volume of a claim.
func claimVolume(name, claim string, readOnly bool) *core.VolumeApplyConfiguration {
	return core.Volume().WithName(name).WithPersistentVolumeClaim(
		core.PersistentVolumeClaimVolumeSource().WithClaimName(claim).WithReadOnly(readOnly))
}

// addHostPath shows a directory of the node. Only a local volume has mount options;
// it needs nodes, and these are all.
func addHostPath(spec *core.PersistentVolumeSpecApplyConfiguration, dir string, readOnly bool) error {
	if !readOnly {
		spec.WithHostPath(core.HostPathVolumeSource().WithPath(dir).WithType(corev1.HostPathDirectory))
		return nil
	}
	spec.WithMountOptions("ro").WithLocal(core.LocalVolumeSource().WithPath(dir)).
		WithNodeAffinity(core.VolumeNodeAffinity().WithRequired(core.NodeSelector().WithNodeSelectorTerms(core.NodeSelectorTerm().
			WithMatchExpressions(core.NodeSelectorRequirement().WithKey(corev1.LabelOSStable).WithOperator(corev1.NodeSelectorOpExists)))))
	return nil
}

// csiDirectory returns the source of a volume that shows a directory of another one. How
// is a matter of the driver. The handle must be unique in the cluster.
func csiDirectory(source corev1.CSIPersistentVolumeSource, dir string, readOnly bool) (
	*core.CSIPersistentVolumeSourceApplyConfiguration, error) {
	attributes := map[string]string{}
	maps.Copy(attributes, source.VolumeAttributes)
	handle := source.VolumeHandle + "#" + dir
	switch source.Driver {
	case "nfs.csi.k8s.io":
		attributes["subDir"] = strings.TrimPrefix(path.Join("/", attributes["subDir"], dir), "/")
	case "cephfs.csi.ceph.com":
		if attributes["staticVolume"] != "true" {
			return nil, errors.New("of cephfs.csi.ceph.com, only static volumes can show a directory: give the claim a volume with staticVolume and rootPath")
		}
		attributes["rootPath"] = path.Join("/", attributes["rootPath"], dir)
	case "efs.csi.aws.com": // FILESYSTEM[:PATH[:ACCESSPOINT]]
		parts := append(strings.SplitN(source.VolumeHandle, ":", 3), "", "")
		handle = strings.TrimRight(parts[0]+":"+path.Join("/", parts[1], dir)+":"+parts[2], ":")
	default:
		return nil, fmt.Errorf("the CSI driver %s cannot show one directory of a volume, or is not known to; export the volume by NFS, for example with “weir nfs”", source.Driver)
	}
	applied := core.CSIPersistentVolumeSource().WithDriver(source.Driver).WithVolumeHandle(handle).WithReadOnly(readOnly).
		WithVolumeAttributes(attributes)
	if source.FSType != "" {
		applied.WithFSType(source.FSType)
	}
	if r := source.NodeStageSecretRef; r != nil {
		applied.WithNodeStageSecretRef(core.SecretReference().WithName(r.Name).WithNamespace(r.Namespace))
	}
	if r := source.NodePublishSecretRef; r != nil {
		applied.WithNodePublishSecretRef(core.SecretReference().WithName(r.Name).WithNamespace(r.Namespace))
	}
	return applied, nil
}

// storageOf returns the backend of a volume that is bound to a claim.
func storageOf(v corev1.PersistentVolume) (Storage, error) {
	s := Storage{MountOptions: v.Spec.MountOptions}
	switch source := v.Spec.PersistentVolumeSource; {
	case source.HostPath != nil || source.Local != nil:
		return s, fmt.Errorf("the volume %s is a directory of a node, and pods on others would see another one; "+
			"in a cluster of one node, set kube-storage, or storage.directory of the chart, to its path instead of the claim", v.Name)
	case source.NFS != nil:
		s.NFSServer, s.NFSPath = source.NFS.Server, source.NFS.Path
	case source.CSI != nil:
		s.CSI = source.CSI
	default:
		return s, fmt.Errorf("the volume %s is neither NFS nor CSI", v.Name)
	}
	return s, nil
}
