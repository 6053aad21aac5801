package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

const benchmarkBytes = 1 << 30

// way is one of several that move the same bytes.
type way struct {
	name string
	move func() error
}

// compareWays measures ways in turn, each time beginning with another one, since the first
// pays for memory that a virtual machine has to get back from its host. It reports the
// median of each way, and its throughput as a multiple of the last one's.
func compareWays(b *testing.B, ways ...way) {
	took := make([][]time.Duration, len(ways))
	b.SetBytes(benchmarkBytes * int64(len(ways)))
	for round := 0; b.Loop(); round++ {
		for i := range ways {
			n := (round + i) % len(ways)
			start := time.Now()
			if err := ways[n].move(); err != nil {
				b.Fatal(ways[n].name, err)
			}
			took[n] = append(took[n], time.Since(start))
		}
	}
	median := func(n int) float64 {
		slices.Sort(took[n])
		return took[n][len(took[n])/2].Seconds()
	}
	last := len(ways) - 1
	for n, w := range ways {
		b.ReportMetric(median(n), "s/"+w.name)
		if n < last {
			b.ReportMetric(median(last)/median(n), w.name+"/"+ways[last].name)
		}
	}
}

// fileOfBenchmark creates a file of random bytes in the project's directory.
func (w *world) fileOfBenchmark(b *testing.B) (path string) {
	b.Helper()
	path = w.onDisk("/large")
	out, err := exec.CommandContext(b.Context(), "dd", "if=/dev/urandom", "of="+path, "bs=1M", "count="+strconv.Itoa(benchmarkBytes>>20), "conv=fsync").CombinedOutput()
	if err != nil {
		b.Fatal(err, string(out))
	}
	return path
}

// BenchmarkDownload measures a file of 1 GiB over HTTP beside nginx, which serves the same
// file, and beside cp:
//
//	go test -run '^$' -bench Download -benchtime 9x ./handlers
//
// It needs nginx, which Debian has as nginx-light.
func BenchmarkDownload(b *testing.B) {
	w := newWorld(b)
	s := w.serve()
	source := w.fileOfBenchmark(b)
	fetch := func(address string) func() error {
		return func() error {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, nil)
			if err != nil {
				return err
			}
			r.Header.Set("Authorization", "Bearer "+w.member)
			return exchange(r, benchmarkBytes)
		}
	}
	compareWays(b,
		way{"weir", fetch(s.URL + apiPrefix + w.filesOf("/content", "/large"))},
		way{"nginx", fetch(serveByNginx(b, filepath.Dir(source)) + "/large")},
		way{"cp", func() error { return copyFile(b.Context(), source, w.onDisk("/copy"), false) }},
	)
}

// BenchmarkUpload measures a file of 1 GiB over HTTP, by PUT and as a resumable upload,
// beside cp with sync:
//
//	go test -run '^$' -bench Upload -benchtime 9x ./handlers
func BenchmarkUpload(b *testing.B) {
	w := newWorld(b)
	w.liftStorageLimits()
	s := w.serve()
	source := w.fileOfBenchmark(b)
	send := func(method, path string, headers ...string) error {
		f, err := os.Open(source)
		if err != nil {
			return err
		}
		defer f.Close()
		r, err := http.NewRequestWithContext(b.Context(), method, s.URL+apiPrefix+path, f)
		if err != nil {
			return err
		}
		r.ContentLength = benchmarkBytes
		r.Header.Set("Authorization", "Bearer "+w.member)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return errors.Join(exchange(r, -1), os.Remove(w.onDisk("/copy")))
	}
	compareWays(b,
		way{"put", func() error { return send(http.MethodPut, w.filesOf("/content", "/copy")) }},
		way{"tus", func() error {
			at, _ := w.beginUpload(w.member, "/copy", strconv.Itoa(benchmarkBytes))
			return send(http.MethodPatch, at, tusHeaders("Upload-Offset", "0")...)
		}},
		way{"cp", func() error { return copyFile(b.Context(), source, w.onDisk("/copy"), true) }},
	)
}

// exchange makes a request, and reads a response of so many bytes; -1 is any number.
func exchange(r *http.Request, want int64) error {
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, make([]byte, 1<<20)) // its own ReadFrom has 8 KiB
	if err == nil && (res.StatusCode >= 300 || want >= 0 && n != want) {
		err = fmt.Errorf("%s, %d bytes", res.Status, n)
	}
	return err
}

// copyFile runs cp, and sync if that is wanted, and removes the copy.
func copyFile(ctx context.Context, from, to string, sync bool) error {
	script := `cp "$0" "$1"`
	if sync {
		script += ` && sync "$1"`
	}
	return errors.Join(exec.CommandContext(ctx, "sh", "-c", script, from, to).Run(), os.Remove(to))
}

// liftStorageLimits lets the member store any number of bytes.
func (w *world) liftStorageLimits() {
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		p, err := q.Project(store.AllProjects, w.project)
		r, err2 := q.Role(store.AllProjects, w.project, w.role)
		p.Quota.StorageMiB, r.Limit.StorageMiB = models.Unlimited, models.Unlimited
		return errors.Join(err, err2, q.UpdateProject(&p), q.UpdateRole(&r))
	})
}

const nginxConfig = `daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log;
worker_processes auto;
%[2]s
events {}
http {
	sendfile on;
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server { listen %[3]s; root %[4]s; }
}
`

// serveByNginx serves a directory until the benchmark ends and returns its address.
func serveByNginx(b *testing.B, dir string) string {
	b.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			b.Skip("nginx is not installed: install nginx-light to compare downloads with it")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	at, own, user := l.Addr().String(), b.TempDir(), ""
	if os.Geteuid() == 0 {
		user = "user root;" // who can read the directory
	}
	config := filepath.Join(own, "nginx.conf")
	if err := errors.Join(l.Close(), os.WriteFile(config, fmt.Appendf(nil, nginxConfig, own, user, at, dir), 0o600)); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "-p", own, "-c", config, "-e", filepath.Join(own, "error.log"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) })
	for deadline := time.Now().Add(patient); ; {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
			return "http://" + at
		}
		if time.Now().After(deadline) {
			b.Fatal("nginx does not listen: ", err)
		}
	}
}
