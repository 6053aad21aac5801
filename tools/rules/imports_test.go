package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "weir"

// mayImport is the import rule: the packages of this module that each package
// may import outside its tests. Every package must be listed.
var mayImport = map[string][]string{
	"models":        {},
	"models/faults": {"models"},
	"models/store":  {"models"},
	"migrations":    {},
	"policies":      {"models", "models/store", "policies/passkeys"},

	"policies/notifications":         {"models", "models/store", "policies"},
	"policies/openid":                {"models", "policies"},
	"policies/passkeys":              {"models"},
	"policies/passkeys/passkeystest": {},
	"policies/openid/openidtest":     {},

	"pool":                     {"models", "models/store", "policies", "pool/estimates", "pool/placement", "pool/placement/history", "pool/queue", "pool/quota", "pool/timeline"},
	"pool/providers":           {"models", "models/store", "policies", "pool/authority"},
	"pool/agent":               {"models", "pool/authority", "pool/providers"},
	"pool/authority":           {},
	"pool/placement":           {},
	"pool/placement/baselines": {"pool/placement"},
	"pool/placement/trace":     {"pool/placement", "pool/placement/baselines"},
	"pool/placement/history":   {"pool/placement"},
	"pool/projects":            {"models", "models/store", "policies", "pool/quota"},
	"pool/queue":               {"pool/placement"},
	"pool/quota":               {"models"}, // for the vector of resources: it is pure all the same
	"pool/requests":            {"models", "models/store", "policies", "pool/projects", "pool/quota"},
	"pool/estimates":           {"pool/placement"},
	"pool/timeline":            {},
	"pool/broker":              {"models", "models/store", "policies", "pool/quota", "pool/timeline"},
	"pool/notebooks":           {},
	"pool/nvml":                {"pool/providers"},

	"storage":         {"models", "models/store", "policies", "storage/beneath", "storage/rules"},
	"storage/rules":   {"models"}, // for the types of rules: it is pure all the same
	"storage/beneath": {"storage/fsquota"},
	"storage/fsquota": {},
	"storage/nfs":     {"storage/rules"},
	"storage/files":   {"models", "models/store", "policies", "storage", "storage/beneath", "storage/rules"},

	"workspaces":                {"models", "models/store", "policies", "pool/quota", "workspaces/barrier", "workspaces/deployments/serving", "workspaces/graph", "workspaces/graph/journal", "workspaces/idleness", "workspaces/runtime"},
	"workspaces/barrier":        {"models"}, // for texts and the types of the report: it is pure all the same
	"workspaces/graph":          {"models"}, // the same
	"workspaces/graph/journal":  {"models", "workspaces/graph"},
	"workspaces/graph/runner":   {"models", "workspaces/graph", "workspaces/graph/journal"},
	"workspaces/idleness":       {},
	"workspaces/runtime":        {"models", "workspaces/idleness"},
	"workspaces/onnx":           {"models", "workspaces/graph"},
	"workspaces/onnx/execution": {"models", "workspaces/graph", "workspaces/onnx"},
	"workspaces/shard":          {"models", "workspaces/onnx"}, // without the database

	"workspaces/shard/split": {"models", "workspaces/shard"},
	"workspaces/deployments": {"models", "models/store", "policies", "workspaces/deployments/serving", "workspaces/graph", "workspaces/onnx", "workspaces/shard"},
	// What a part is, and what reads and writes it.
	"workspaces/deployments/serving":   {"models", "workspaces/deployments/tokenizer", "workspaces/shard", "workspaces/shard/split"},
	"workspaces/deployments/tokenizer": {},

	"workspaces/local": {"models", "storage/beneath", "workspaces/runtime"},
	"workspaces/kube":  {"models", "workspaces/runtime"},
	"workspaces/proxy": {"models"},

	"docs":               {},
	"web":                {"models"},
	"handlers/live":      {"models", "models/store", "policies"},
	"handlers/metrics":   {"models", "models/store", "policies", "pool", "workspaces"},
	"handlers/notebook":  {"web"}, // for what its pages show
	"handlers/reference": {},
	"handlers/sheet":     {"models"},
	"handlers":           {"docs", "handlers/live", "handlers/metrics", "handlers/notebook", "handlers/reference", "handlers/sheet", "models", "models/store", "policies", "policies/notifications", "pool", "pool/authority", "pool/broker", "pool/estimates", "pool/placement", "pool/placement/history", "pool/projects", "pool/providers", "pool/queue", "pool/quota", "pool/requests", "storage", "storage/beneath", "storage/files", "storage/rules", "web", "workspaces", "workspaces/deployments", "workspaces/deployments/serving", "workspaces/shard"},
	"cmd/weir":           {everything},
	"cmd/weir/archive":   {},
	"cmd/weir/cli":       {"cmd/weir/config", "handlers", "models", "pool", "pool/broker", "pool/providers", "workspaces", "workspaces/graph", "workspaces/graph/runner"},
	"cmd/weir/config":    {"models", "policies", "policies/notifications", "policies/openid", "pool/agent", "pool/authority", "pool/broker", "pool/placement", "storage/files", "storage/nfs", "storage/rules", "workspaces/kube"},

	"models/store/storetest":      {"migrations", "models", "models/store"},
	"pool/pooltest":               {everything},
	"storage/storagetest":         {everything},
	"workspaces/onnx/onnxtest":    {},
	"workspaces/runtimetest":      {"models", "workspaces/idleness", "workspaces/runtime"},
	"workspaces/kube/clustertest": {},
	"deploy":                      {},
	"e2e":                         {},
	"tools/rules":                 {},

	"tools/openapi": {},
	"tools/peers":   {},
	"tools/vm":      {},

	"tools/cluster":             {"tools/cluster/image"},
	"tools/cluster/faults":      {},
	"tools/cluster/image":       {},
	"tools/cluster/image/pause": {},
	"tools/cluster/cmd":         {"tools/cluster"},
}

const everything = "*"

// testHelpers are for tests only: production code must not import them.
var testHelpers = []string{"models/faults", "storage/storagetest", "models/store/storetest", "pool/pooltest", "policies/openid/openidtest", "policies/passkeys/passkeystest", "workspaces/kube/clustertest", "workspaces/onnx/onnxtest", "workspaces/runtimetest", "deploy", "e2e", "tools/openapi", "tools/rules", "tools/vm", "tools/cluster", "tools/cluster/faults", "tools/cluster/image"}

// pure packages decide and nothing else, so that a test can hold them to
// every case: of what is not ours they import the standard library alone.
var pure = []string{"models", "pool/authority", "pool/placement", "pool/placement/baselines", "pool/placement/trace", "pool/placement/history",
	"pool/queue", "pool/quota", "pool/estimates", "pool/timeline", "pool/notebooks", "storage/rules", "workspaces/barrier", "workspaces/deployments/tokenizer", "workspaces/graph", "workspaces/idleness", "workspaces/shard"}

// unicodeTables are data, as those of the standard library.
const unicodeTables = "golang.org/x/text/unicode/norm"

// withoutDatabase must not link the database, not even through others.
var withoutDatabase = []string{"models", "web", "pool/quota", "storage/rules", "workspaces/barrier", "workspaces/graph", "workspaces/graph/journal", "workspaces/graph/runner", "workspaces/onnx", "workspaces/shard", "workspaces/shard/split", "workspaces/kube", "workspaces/local", "workspaces/proxy"}

// importer is a package with its imports outside tests.
type importer struct {
	ImportPath string
	Imports    []string
}

func (p importer) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		allowed, known := mayImport[p.name()]
		if !known {
			t.Errorf("%s has no line in the import rule: decide what it may import", p.name())
			continue
		}
		for _, path := range p.Imports {
			if reason := refuse(p.name(), path, allowed); reason != "" {
				t.Errorf("%s imports %s: %s", p.name(), path, reason)
			}
		}
	}
}

// The rule names no package that is not there, and allows nothing that is not used.
func TestImportRuleIsExact(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range listPackages(t) {
		imports[p.name()] = p.Imports
	}
	for name, allowed := range mayImport {
		if _, known := imports[name]; !known {
			t.Errorf("the import rule names %s, which is no package", name)
		}
		for _, path := range allowed {
			if path != everything && !slices.Contains(imports[name], module+"/"+path) {
				t.Errorf("%s may import %s and does not: remove that from the import rule", name, path)
			}
		}
	}
	for _, name := range slices.Concat(testHelpers, pure, withoutDatabase) {
		if _, known := imports[name]; !known {
			t.Errorf("%s is no package", name)
		}
	}
}

func TestWithoutDatabase(t *testing.T) {
	for _, name := range withoutDatabase {
		cmd := exec.Command("go", "list", "-deps", "./"+name)
		cmd.Dir = root
		deps, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for path := range strings.Lines(string(deps)) {
			if strings.HasPrefix(path, "gorm.io/") || strings.TrimSpace(path) == module+"/models/store" {
				t.Errorf("%s links %s", name, path)
			}
		}
	}
}

var packagesPattern = regexp.MustCompile(`(?ms)^## Packages\n(.*?)^## `)

// The table of packages in docs/design.md has every package that is not for tests and
// tools alone, and each above those that it imports.
func TestPackagesStandAboveWhatTheyImport(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	row, found := map[string]int{}, map[string]bool{} // by package
	for number, line := range strings.Split(packagesPattern.FindString(string(text)), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for _, name := range codeIn(cells[1]) {
				row[name] = number
			}
		}
	}
	for _, p := range listPackages(t) {
		own, listed := row[p.name()]
		if tools := slices.Contains(testHelpers, p.name()) || strings.HasPrefix(p.name(), "tools/"); listed == tools {
			t.Errorf("%s is in the table: %t", p.name(), listed)
		}
		found[p.name()] = true
		for _, path := range p.Imports {
			if imported := strings.TrimPrefix(path, module+"/"); row[imported] > 0 && row[imported] < own {
				t.Errorf("%s stands below %s, which it imports", p.name(), imported)
			}
		}
	}
	for name := range row {
		if !found[name] {
			t.Errorf("the table names %s, which is no package", name)
		}
	}
}

// refuse returns what is wrong with an import, or "".
func refuse(importer, path string, allowed []string) string {
	imported, own := strings.CutPrefix(path, module+"/")
	switch {
	case !own && slices.Contains(pure, importer) && !standard(path) && path != unicodeTables:
		return "it may import the standard library only"
	case !own:
		return ""
	case slices.Contains(testHelpers, imported) && !slices.Contains(testHelpers, importer) && !strings.HasPrefix(importer, "tools/"):
		return "that is for tests only"
	case strings.HasPrefix(imported, "cmd/") && !strings.HasPrefix(importer, "cmd/"):
		return "nothing may import a command"
	case !slices.Contains(allowed, imported) && !slices.Contains(allowed, everything):
		return "the import rule does not allow it"
	}
	return ""
}

// standard reports whether a path is of the standard library: others begin
// with a host name.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func listPackages(t *testing.T) (packages []importer) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p importer
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		importer, path string
		allowed        []string
		ok             bool
	}{
		{"pool", "weir/models", []string{"models"}, true},
		{"models", "weir/pool", nil, false},
		{"cmd/weir", "weir/pool", []string{everything}, true},
		{"cmd/weir", "weir/models/store/storetest", []string{everything}, false},
		{"cmd/weir", "weir/tools/cluster", []string{everything}, false},
		{"tools/cluster/cmd", "weir/tools/cluster", []string{"tools/cluster"}, true},
		{"handlers", "weir/cmd/weir", []string{everything}, false},
		{"handlers", "weir/cmd/weir/config", []string{everything}, false},
		{"cmd/weir/cli", "weir/cmd/weir/config", []string{"cmd/weir/config"}, true},
		{"pool", "gorm.io/gorm", nil, true},
		{"pool/placement", "gorm.io/gorm", nil, false},
		{"pool/placement", "container/heap", nil, true},
	} {
		if reason := refuse(c.importer, c.path, c.allowed); (reason == "") != c.ok {
			t.Errorf("%s imports %s: %q", c.importer, c.path, reason)
		}
	}
}
