package serving

import (
	"os/exec"
	"strings"
	"testing"
)

// A part with a GPU that its library does not use ends with the reason, instead of computing on the CPU; one with
// a simulated GPU is loaded.
func TestUnusedGPU(t *testing.T) {
	for simulated, want := range map[string]string{"": "loading failed: RuntimeError: the share of a GPU would not be used: NumPy computes on CPUs",
		"1": "loading failed: FileNotFoundError"} {
		cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-B", "-c", `
import sys
sys.modules["torch"] = None
text = open("worker.py").read()
worker = {"__file__": "worker.py"}
exec(text[:text.rindex("main()")], worker)
try:
    worker["load"](None, None)
except Exception as e:
    worker["end"]("loading failed: %s: %s" % (type(e).__name__, e))
`)
		cmd.Env = []string{"WEIR_GPU_SIMULATED=" + simulated}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("simulated %q: %v, %s; want %s", simulated, err, out, want)
		}
	}
}

// A template of a conversation that takes too long is the error of one request: the process goes
// on, and renders the next one.
func TestSlowTemplate(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-B", "-c", `
text = open("worker.py").read()
worker = {"__file__": "worker.py"}
exec(text[:text.rindex("main()")], worker)
worker["RENDER_SECONDS"] = 0.2
slow = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}"
for template in slow, "{{ messages[0] }}":
    print(worker["render"]({"template": template, "messages": ["first"]}))
`).CombinedOutput()
	want := "('', 'it takes more than 0 seconds')\n('first', '')\n"
	if err != nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("%v, %s; want %s", err, out, want)
	}
}
