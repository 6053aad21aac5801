package providers

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
)

// codeAlphabet is Crockford's base 32: no letter that reads like a digit.
var codeAlphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// MachineDigest is by what the portal knows a machine: the identity itself,
// such as the contents of /etc/machine-id, does not leave it.
func MachineDigest(identity string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("weir machine\n"+strings.TrimSpace(identity))))
}

// NodeDigest is by what the portal knows a node of its cluster, as
// [MachineDigest] is for a machine that enrolled by a code: it is the node of
// that name, whatever is installed on it anew.
func NodeDigest(node string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("weir node\n"+node)))
}

// isDigest tells whether a text can be a machine's digest.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// GPUCode names a machine with its physical GPUs: 16 characters in groups of
// four. Another machine, or a GPU more or less, has another code; the order
// of the GPUs does not matter.
func GPUCode(machineDigest string, uuids []string) string {
	sorted := slices.Sorted(slices.Values(uuids))
	sum := sha256.Sum256(fmt.Appendf(nil, "weir gpu code\n%s\n%q", machineDigest, sorted))
	text := codeAlphabet.EncodeToString(sum[:10])
	return strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-")
}

// GPUCodeOf is the code of what a machine reports.
func GPUCodeOf(machineDigest string, reports []DeviceReport) string {
	var uuids []string
	for _, r := range reports {
		if r.Parent == "" {
			uuids = append(uuids, r.UUID)
		}
	}
	return GPUCode(machineDigest, uuids)
}

// ParseGPUCode reads a code as people write it: in any case, with or without
// hyphens, with O for 0 and I or L for 1. ok is false for what is none.
func ParseGPUCode(text string) (code string, ok bool) {
	text = strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(strings.TrimSpace(text)))
	if _, err := codeAlphabet.DecodeString(text); err != nil || len(text) != 16 {
		return "", false
	}
	return strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-"), true
}
