package providers

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"weir/models"
	"weir/pool/authority"
)

const codeBytes = 10 // of a GPU code

// MachineDigest identifies a machine. The identity itself, such as the contents
// of /etc/machine-id, does not leave it.
func MachineDigest(identity string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("weir machine\n"+strings.TrimSpace(identity))))
}

// NamedByNode reports whether a provider has the name of its node of the cluster, by which its
// pods are placed, so that the name cannot be changed.
func NamedByNode(p models.Provider) bool { return p.Machine == NodeDigest(p.Name) }

// NodeDigest identifies a node of the cluster by its name, so that a node that was
// installed again is the same.
func NodeDigest(node string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("weir node\n"+node)))
}

// isDigest reports whether text has the form of a digest.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// GPUCode identifies a machine with its physical GPUs, in any order: 16 characters
// in groups of four.
func GPUCode(machineDigest string, uuids []string) string {
	sorted := slices.Sorted(slices.Values(uuids))
	sum := sha256.Sum256(fmt.Appendf(nil, "weir gpu code\n%s\n%q", machineDigest, sorted))
	return authority.EncodeCode(sum[:codeBytes])
}

// GPUCodeOf is the GPU code of a report.
func GPUCodeOf(machineDigest string, reports []DeviceReport) string {
	var uuids []string
	for _, r := range reports {
		if r.Parent == "" {
			uuids = append(uuids, r.UUID)
		}
	}
	return GPUCode(machineDigest, uuids)
}

// ParseGPUCode normalizes a GPU code, see [authority.DecodeCode]. ok is false if it
// is invalid.
func ParseGPUCode(text string) (code string, ok bool) {
	raw, err := authority.DecodeCode(text)
	if err != nil || len(raw) != codeBytes {
		return "", false
	}
	return authority.EncodeCode(raw), true
}
