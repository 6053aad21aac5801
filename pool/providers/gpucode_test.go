package providers_test

import (
	"strings"
	"testing"

	"weir/pool/providers"
)

func TestGPUCode(t *testing.T) {
	a := providers.GPUCode(providers.MachineDigest("m"), []string{"GPU-1", "GPU-2"})
	if b := providers.GPUCode(providers.MachineDigest("m\n"), []string{"GPU-2", "GPU-1"}); a != b || len(a) != 19 {
		t.Errorf("%s, then %s", a, b)
	}
	for _, other := range []string{
		providers.GPUCode(providers.MachineDigest("n"), []string{"GPU-1", "GPU-2"}), providers.GPUCode(providers.MachineDigest("m"), []string{"GPU-1"}),
		providers.GPUCode(providers.MachineDigest("m"), []string{"GPU-1", "GPU-2", "GPU-3"}), providers.GPUCode(providers.MachineDigest("m"), nil),
	} {
		if other == a {
			t.Errorf("%s twice", a)
		}
	}
	for text, want := range map[string]string{
		a: a, strings.ToLower(a): a, " " + strings.ReplaceAll(a, "-", "") + "\n": a, "0oil-0000-0000-0000": "0011-0000-0000-0000",
	} {
		if code, ok := providers.ParseGPUCode(text); !ok || code != want {
			t.Errorf("%q is %q, %v", text, code, ok)
		}
	}
	for _, text := range []string{"", "0000-0000-0000-000", "0000-0000-0000-0000-0", "UUUU-0000-0000-0000", "É000-0000-0000-0000"} {
		if code, ok := providers.ParseGPUCode(text); ok {
			t.Errorf("%q is %q", text, code)
		}
	}
}
