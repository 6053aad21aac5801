package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// metricName matches a metric of Weir in an expression, without a histogram's suffix.
var metricName = regexp.MustCompile(`weir_[a-z_]+?(_(?:bucket|count|sum))?\b`)

// Alerts and the dashboard use metrics that docs/reference/metrics.md lists, and that the code
// names.
func TestMonitoringUsesExportedMetrics(t *testing.T) {
	documented, named := read(t, "../docs/reference/metrics.md"), ""
	for _, file := range []string{"handlers/metrics/pool.go", "handlers/metrics/projects.go", "handlers/metrics/metrics.go"} {
		named += read(t, "../"+file)
	}
	for _, file := range []string{"monitoring/rules.yaml", "monitoring/dashboard.json"} {
		names := metricName.FindAllStringSubmatch(read(t, file), -1)
		if len(names) < 8 {
			t.Errorf("%s uses only %d metrics", file, len(names))
		}
		for _, m := range names {
			if name := strings.TrimSuffix(m[0], m[1]); !strings.Contains(documented, "`"+name+"`") || !strings.Contains(named, `"`+name+`"`) {
				t.Errorf("%s uses %s, which is not exported", file, name)
			}
		}
	}
}

func TestDashboard(t *testing.T) {
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || len(p.Targets) == 0 || p.Targets[0].Expr == "" {
			t.Errorf("panel %d shows nothing: %+v", p.ID, p)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, there := taken[[2]int{x, y}]; there || x >= 24 {
					t.Fatalf("panel %s overlaps %s or the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
}

// Prometheus accepts the alerts, and they fire when they should.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "monitoring"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
