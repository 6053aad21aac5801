package rules

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsFollowFromNumbers(t *testing.T) {
	r := IDRange{100_000, 109_999}
	for n, want := range map[int64]int64{1: 100_001, 9_999: 109_999, 0: 0, -1: 0, 10_000: 0, 1 << 62: 0} {
		if id, err := r.User(n); (err == nil) != (want != 0) || id != want {
			t.Errorf("%d: %d, %v", n, id, err)
		}
	}
	if _, err := (IDRange{}).Group(1); err == nil || (IDRange{}).Contains(1) || (IDRange{}).Contains(0) {
		t.Error("an empty range has IDs")
	}
}

func TestAttributesByPath(t *testing.T) {
	o := Owners{Range: IDRange{100_000, 109_999}, UID: 62}
	const group = 100_005
	for _, c := range []struct {
		path string
		kind Kind
		is   Attributes
		want Attributes
	}{
		{"/notebook/5", Directory, Attributes{0, 0, 0o755}, Attributes{62, group, 0o2750}},
		{"/notebook/5/project_model", Directory, Attributes{0, 0, 0o755}, Attributes{62, group, 0o2770}},
		{"/notebook/5/7", Directory, Attributes{62, 62, 0o700}, Attributes{100_007, group, 0o2770}},
		{"/notebook/5/project_model/x", File, Attributes{62, 62, 0o644}, Attributes{62, group, 0o664}},
		{"/notebook/5/project_model/x", File, Attributes{100_009, 1, 0o600}, Attributes{100_009, group, 0o660}},
		{"/notebook/5/project_model/x", Directory, Attributes{100_009, group, 0o1700}, Attributes{100_009, group, 0o2770}},
		{"/notebook/5/project_model/x", File, Attributes{0, 0, 0o4755}, Attributes{62, group, 0o775}},
		{"/notebook/5/7/x", File, Attributes{62, 62, 0o644}, Attributes{100_007, group, 0o664}},
		{"/notebook/5/7/key", File, Attributes{62, 62, 0o600}, Attributes{100_007, group, 0o600}},
		{"/notebook/5/7/.ssh", Directory, Attributes{62, 62, 0o700}, Attributes{100_007, group, 0o2770}},
		{"/notebook/5/7/x", File, Attributes{100_009, group, 0o640}, Attributes{100_009, group, 0o660}},
		{"/notebook/5/07/x", File, Attributes{1, 1, 0o600}, Attributes{62, group, 0o660}},
	} {
		got, err := o.Attributes(5, c.path, c.kind, c.is)
		if err != nil || got != c.want {
			t.Errorf("%s %+v: %+v, %v, want %+v", c.path, c.is, got, err, c.want)
		}
	}
}

// Whatever a file is, the wanted attributes want no more changes, have the project's
// group and an owner who is no user of the machine, and take nothing from the owner.
func TestAttributesAreStable(t *testing.T) {
	o := Owners{Range: IDRange{100_000, 109_999}, UID: 62}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"/notebook/5", "/notebook/5/7", "/notebook/5/project_dataset", "/notebook/5/7/a/b", "/notebook/5/project_dataset/a", "/notebook/5/else"}).Draw(t, "path")
		kind := rapid.SampledFrom([]Kind{File, Directory}).Draw(t, "kind")
		is := Attributes{rapid.Int64Range(0, 200_000).Draw(t, "uid"), rapid.Int64Range(0, 200_000).Draw(t, "gid"), rapid.Uint32Range(0, 0o7777).Draw(t, "mode")}
		want, err := o.Attributes(5, path, kind, is)
		if err != nil {
			t.Fatal(err)
		}
		again, err := o.Attributes(5, path, kind, want)
		if err != nil || again != want {
			t.Fatalf("%+v, then %+v, %v", want, again, err)
		}
		if want.GID != 100_005 || want.UID != 62 && !o.Range.Contains(want.UID) || want.Mode&0o7000 != 0 && path == "/notebook/5/7/a/b" && kind == File {
			t.Fatalf("%+v", want)
		}
		if strings.Count(path, "/") > 3 && is.Mode&0o700 != want.Mode&0o700 {
			t.Fatalf("the owner's permissions changed from %o to %o", is.Mode, want.Mode)
		}
	})
}
