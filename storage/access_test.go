package storage

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

func TestAccessTo(t *testing.T) {
	member := models.DirectoryUser{ProjectID: 5, MemberID: 12, Inherits: []int64{7, 9}}
	for _, c := range []struct {
		path                        string
		present, afterEnd, afterOwn Access
	}{
		{"/notebook/5/project_algorithm", ReadWrite, Read, Read},
		{"/notebook/5/project_model/a/b.bin", ReadWrite, Read, Read},
		{"/notebook/5/project_dataset/", ReadWrite, Read, Read},
		{"/notebook/5/12", ReadWrite, Read, Read},
		{"/notebook/5/12/x.ipynb", ReadWrite, Read, Read},
		{"/home/jovyan", ReadWrite, Read, Read},
		{"/home/jovyan/x", ReadWrite, Read, Read},
		{"/notebook/5/7", ReadWrite, Read, Read},
		{"/notebook/5/9/x", ReadWrite, Read, Read},
		{"/notebook/5/8", Read, Read, Read},
		{"/notebook/5/120", Read, Read, Read},
		{"/notebook/5/012", Read, Read, Read},
		{"/notebook/5/project_models", Read, Read, Read},
		{"/notebook/5", Read, Read, Read},
		{"/public_model", Read, Read, Read},
		{"public_dataset/x", Read, Read, Read},
		{"/public", None, None, None},
		{"/notebook", None, None, None},
		{"/notebook/6", None, None, None},
		{"/notebook/6/12", None, None, None},
		{"/notebook/05/12", None, None, None},
		{"/notebook/5/12/../../6/12", None, None, None},
		{"/notebook/5/../5/12", ReadWrite, Read, Read},
		{"/notebook/5/12/../8", Read, Read, Read},
		{"/home", None, None, None},
		{"/home/jovyan2", None, None, None},
		{"/home/jovyan/../x", None, None, None},
		{"/", None, None, None},
		{"", None, None, None},
		{"/etc/passwd", None, None, None},
	} {
		ended, left := member, member
		ended.Ended, left.Left = true, true
		for _, v := range []struct {
			name   string
			holder models.DirectoryUser
			want   Access
		}{{"present", member, c.present}, {"after the project's end", ended, c.afterEnd}, {"after leaving", left, c.afterOwn}} {
			if got := AccessTo(v.holder, c.path); got != v.want {
				t.Errorf("%s, %s: %d, want %d", c.path, v.name, got, v.want)
			}
		}
	}
}

// What is mounted is what the access allows, of every directory; nobody writes
// another's, and nobody writes anything when all is over.
func TestMountsFollowTheAccess(t *testing.T) {
	d := &Directories{root: "/srv/weir"}
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.Int64Range(1, 40)
		h := models.DirectoryUser{ProjectID: ids.Draw(t, "project"), MemberID: ids.Draw(t, "member"), Ended: rapid.Bool().Draw(t, "ended"), Left: rapid.Bool().Draw(t, "left"),
			Inherits: rapid.SliceOfNDistinct(ids, 0, 4, rapid.ID[int64]).Draw(t, "inherits")}
		h.Inherits = slices.DeleteFunc(h.Inherits, func(id int64) bool { return id == h.MemberID })
		seen := map[string]bool{}
		for _, m := range d.Mounts(h) {
			if seen[m.Target] {
				t.Fatalf("two mounts at %s", m.Target)
			}
			seen[m.Target] = true
			for parent := filepath.Dir(m.Target); parent != "/"; parent = filepath.Dir(parent) {
				if strings.HasPrefix(parent, "/notebook/") && !seen[parent] {
					t.Fatalf("%s comes before %s", m.Target, parent)
				}
			}
			writes := AccessTo(h, m.Target) == ReadWrite
			if writes == m.ReadOnly || writes && (h.Ended || h.Left) || AccessTo(h, m.Target) == None {
				t.Fatalf("%+v for %+v: %d", m, h, AccessTo(h, m.Target))
			}
		}
		for id := int64(1); id <= 40; id++ {
			dir := "/notebook/" + strconv.FormatInt(h.ProjectID, 10) + "/" + strconv.FormatInt(id, 10)
			mine := id == h.MemberID || slices.Contains(h.Inherits, id)
			if got := AccessTo(h, dir) == ReadWrite; got != (mine && !h.Ended && !h.Left) {
				t.Fatalf("writes %s: %v", dir, got)
			}
		}
	})
}

// An heir's mounts can be made although the leaver's directory is gone.
func TestMountsMakeWhatIsMissing(t *testing.T) {
	d, err := New(t.TempDir(), os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := d.EnsureMounts(t.Context(), models.DirectoryUser{ProjectID: 5, MemberID: 12, Inherits: []int64{7}})
	if err != nil || len(mounts) != 10 {
		t.Fatalf("%+v, %v", mounts, err)
	}
	for _, m := range mounts {
		if info, err := os.Stat(m.Source); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", m.Source, err)
		}
	}
}
