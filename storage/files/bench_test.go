package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// BenchmarkUpload measures what a file of 256 MiB takes, with its sync: as one write, as a
// resumable upload, and by cp.
//
//	go test -run '^$' -bench Upload -benchtime 3x ./storage/files
func BenchmarkUpload(b *testing.B) {
	const size = 256 << 20
	source := filepath.Join(b.TempDir(), "source")
	if out, err := exec.Command("dd", "if=/dev/urandom", "of="+source, "bs=1M", fmt.Sprint("count=", size>>20)).CombinedOutput(); err != nil {
		b.Fatal(string(out), err)
	}
	w := newWorld(b, storetest.Open(b, "sqlite"), b.TempDir())
	storetest.InTx(b, w.store, func(q *store.Queries) error {
		p, err := q.Project(store.AllProjects, w.project)
		p.Quota.StorageMiB = models.Unlimited
		m, err2 := q.MembershipsOf(w.acting.User.ID, q.Now())
		r, err3 := q.Role(store.AllProjects, w.project, m[0].RoleID)
		r.Limit.StorageMiB = models.Unlimited
		return errors.Join(err, err2, err3, q.UpdateProject(&p), q.UpdateRole(&r))
	})
	ways := map[string]func(name string, content io.Reader) error{
		"write": func(name string, content io.Reader) error {
			_, err := w.Write(b.Context(), w.acting, w.project, w.at(name), content, size, Condition{})
			return err
		},
		"upload": func(name string, content io.Reader) error {
			u, err := w.BeginUpload(b.Context(), w.acting, w.project, w.at(name), size)
			if err == nil {
				_, err = u.Append(b.Context(), 0, content)
			}
			if err == nil {
				_, err = u.Finish(b.Context())
			}
			return err
		},
		"cp": func(name string, _ io.Reader) error {
			return exec.Command("sh", "-c", `cp "$0" "$1" && sync "$1"`, source, w.disk(w.at(name))).Run()
		},
	}
	took := map[string]time.Duration{}
	for i := 0; b.Loop(); i++ {
		for way, put := range ways {
			f, err := os.Open(source)
			if err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			err = put(fmt.Sprint(way, i), struct{ io.Reader }{f}) // a connection, which the kernel cannot copy
			took[way] += time.Since(start)
			if err := errors.Join(err, f.Close(), os.Remove(w.disk(w.at(fmt.Sprint(way, i))))); err != nil {
				b.Fatal(way, err)
			}
		}
	}
	for way, all := range took {
		b.ReportMetric(all.Seconds()/float64(b.N), "s/"+way)
	}
}
