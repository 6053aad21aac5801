package deploy

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// Manifests is the output of “make manifests”, for the release weir in the namespace
// weir.
//
//go:embed manifests/weir.yaml
var Manifests []byte

// KubeVersion is the version of Kubernetes for which the chart is rendered.
const KubeVersion = "1.34.0"

// Release is the usual name of a release, and of its namespace.
const Release = "weir"

// Render renders the chart with values, for a release in the namespace of its name. A
// value is a file, or key=value as for Helm's --set.
func Render(ctx context.Context, release string, values ...string) ([]byte, error) {
	h, err := findHelm()
	if err != nil {
		return nil, err
	}
	args := []string{"template", release, "deploy/chart", "--namespace=" + release, "--kube-version=" + KubeVersion}
	for _, v := range values {
		if strings.Contains(v, "=") {
			args = append(args, "--set="+v)
		} else {
			args = append(args, "--values="+v)
		}
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.root, &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("rendering the chart: %w: %s", err, problems.String())
	}
	return out.Bytes(), nil
}

// helm contains the paths of Weir's source and of the compiled Helm.
type helm struct{ root, program string }

// findHelm compiles Helm unless it is cached.
var findHelm = sync.OnceValues(func() (h helm, err error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return h, fmt.Errorf("finding the chart beside the source: %w", err)
	}
	h.root = filepath.Dir(strings.TrimSpace(string(out)))
	tool := exec.Command("go", "tool", "-modfile=tools/helm/go.mod", "-n", "helm")
	tool.Dir = h.root
	if out, err = tool.Output(); err != nil {
		return h, fmt.Errorf("compiling Helm: %w", err)
	}
	h.program = strings.TrimSpace(string(out))
	return h, nil
})

// Objects decodes manifests. Unknown fields and unknown kinds are errors.
func Objects(manifests []byte) ([]runtime.Object, error) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests))); ; {
		text, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case empty(text):
			continue
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, text)
		}
		all = append(all, object)
	}
}

// empty reports whether a document has only comments.
func empty(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// Of returns the objects of one type.
func Of[T runtime.Object](all []runtime.Object) (list []T) {
	for _, object := range all {
		if o, ok := object.(T); ok {
			list = append(list, o)
		}
	}
	return list
}
