package serving

import (
	"os/exec"
	"strings"
	"testing"
)

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
