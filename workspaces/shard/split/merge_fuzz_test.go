package split

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// Whatever a manifest says, merging writes nothing outside its folder, and without an error exactly the files that it
// names, with the sizes that it states.
func FuzzMerge(f *testing.F) {
	dir, parts := writeModel(f, 1), f.TempDir()
	split(f, dir, root(f, parts), "layers", .5)
	files := fstest.MapFS{}
	list, err := os.ReadDir(parts)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range list {
		content, err := os.ReadFile(filepath.Join(parts, e.Name()))
		if err != nil {
			f.Fatal(err)
		}
		files[e.Name()] = &fstest.MapFile{Data: content}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, files[ManifestName].Data); err != nil {
		f.Fatal(err)
	}
	valid := compact.String()
	f.Add([]byte(valid))
	for _, change := range [][2]string{{`"name":"model-0`, `"name":"../model-0`}, {`"name":"model-0`, `"name":"/model-0`}, {`"name":"model-0`, `"name":"a/b`},
		{`"name":"model-1`, `"name":"model-0`}, {`"size":`, `"size":-`}, {`"size":`, `"size":9`}, {`"header":"`, `"header":"AAAA`},
		{`"file":"part-`, `"file":"../part-`}, {`"config":{"config.json":"`, `"config":{"../x":"`}, {`"version":1`, `"version":2`}, {`"parts":[`, `"parts":[{},`}} {
		if !strings.Contains(valid, change[0]) {
			f.Fatalf("a manifest has no %s: %s", change[0], valid)
		}
		f.Add([]byte(strings.Replace(valid, change[0], change[1], 1)))
		f.Add([]byte(strings.ReplaceAll(valid, change[0], change[1])))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		from := fstest.MapFS{}
		for name, file := range files {
			from[name] = file
		}
		from[ManifestName] = &fstest.MapFile{Data: text}
		above := t.TempDir()
		below := filepath.Join(above, "below")
		if err := os.Mkdir(below, 0o700); err != nil {
			t.Fatal(err)
		}
		m, err := Merge(t.Context(), from, root(t, below))
		if around, unread := os.ReadDir(above); unread != nil || len(around) != 1 {
			t.Fatalf("it writes %v, %v", around, unread)
		}
		if err != nil {
			return
		}
		named := map[string]bool{}
		for _, file := range m.Files {
			named[file.Name] = true
			content, err := os.ReadFile(filepath.Join(below, file.Name))
			if err != nil || len(m.Files) == 1 && int64(len(content)) != file.Size || len(content) >= 8 && len(m.Files) == 1 && !bytes.HasPrefix(content[8:], file.Header) {
				t.Errorf("%q has %d bytes, not %d: %v", file.Name, len(content), file.Size, err)
			}
		}
		for name := range m.Config {
			named[name] = true
		}
		err = fs.WalkDir(os.DirFS(below), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && !named[name] && !strings.HasPrefix(name, ".") {
				t.Errorf("it writes %q, which the manifest does not name", name)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
