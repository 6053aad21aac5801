package nfs

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden file")

func prefixes(all ...string) (list []netip.Prefix) {
	for _, p := range all {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

func TestText(t *testing.T) {
	c := Config{Root: "/srv/weir", Dir: "/var/lib/weir/nfs", Listen: netip.MustParseAddrPort("0.0.0.0:2049"), Path: "/weir",
		Nodes: prefixes("10.0.0.7/24", "fd00::/64"), Servers: prefixes("10.0.1.5/32")}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	got := c.Text(c.Exports([]Project{{7, 1900000007}, {65435, 62000}}))
	const golden = "testdata/ganesha.conf"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it):\n%s", golden, got)
	}
}

func anyProject(t *rapid.T) Project {
	return Project{rapid.Int64Range(1, MaxProject).Draw(t, "id"), rapid.Uint32().Draw(t, "group")}
}

// A handle contains the id of its export: no two may have the same, and the same export
// always has the same, whatever other projects exist.
func TestExportIDs(t *testing.T) {
	c := Config{Root: "/srv/weir", Path: "/weir", Nodes: prefixes("10.0.0.0/24"), Servers: prefixes("10.0.1.5/32")}
	rapid.Check(t, func(t *rapid.T) {
		known := map[string]uint16{}
		for range 2 {
			ids := map[uint16]bool{}
			for _, e := range c.Exports(rapid.SliceOfDistinct(rapid.Custom(anyProject), func(p Project) int64 { return p.ID }).Draw(t, "projects")) {
				if id, ok := known[e.Path]; ids[e.ID] || e.ID == 0 || ok && id != e.ID {
					t.Errorf("%s has the id %d", e.Path, e.ID)
				}
				ids[e.ID], known[e.Path] = true, e.ID
			}
		}
	})
}

// Nodes get projects and public directories, the latter only to read, and only the
// servers everything.
func TestExportsForNodes(t *testing.T) {
	c := Config{Root: "/srv/weir", Path: "/weir", Nodes: prefixes("10.0.0.0/24")}
	var got []string
	for _, e := range c.Exports([]Project{{7, 52007}}) {
		got = append(got, fmt.Sprintf("%s %t %t %v", e.Path, e.ReadOnly, e.Root, e.Clients))
	}
	want := "/weir/public_algorithm true false [10.0.0.0/24], /weir/public_model true false [10.0.0.0/24], /weir/public_dataset true false [10.0.0.0/24], " +
		"/weir/notebook/7 false false [10.0.0.0/24]"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s", strings.Join(got, ", "))
	}
}

func TestCheck(t *testing.T) {
	good := Config{Root: "/srv/weir", Dir: "/var/lib/weir/nfs", Path: "/weir", Nodes: prefixes("10.0.0.0/24")}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"good":          {func(*Config) {}, ""},
		"nobody":        {func(c *Config) { c.Nodes = nil }, "addresses of the nodes"},
		"relative root": {func(c *Config) { c.Root = "weir" }, "the shared directory"},
		"quote":         {func(c *Config) { c.Root = `/srv/"; } EXPORT {` }, "the shared directory"},
		"line":          {func(c *Config) { c.Root = "/srv/\nweir" }, "the shared directory"},
		"root":          {func(c *Config) { c.Path = "/" }, "path of the exports"},
		"above":         {func(c *Config) { c.Path = "/weir/.." }, "path of the exports"},
		"small network": {func(c *Config) { c.Servers = prefixes("fd00::/112") }, "too small"},
		"address":       {func(c *Config) { c.Servers = prefixes("fd00::5/128", "10.0.0.8/30") }, ""},
		"state":         {func(c *Config) { c.Dir = "/var/$HOME" }, "state directory"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Check(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
