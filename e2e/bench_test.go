package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/models/store/storetest"
)

// quiet servers log as they do in use.
var quiet = []string{"--log-level", "info"}

// BenchmarkPages measures the whole program: how many pages it serves in a
// second to eight browsers for each processor, signed in, with workspaces
// running and shares held.
//
//	go test -run '^$' -bench Pages ./e2e
func BenchmarkPages(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchPages(b, options{}) })
	b.Run("postgres", func(b *testing.B) { benchPages(b, options{database: storetest.Postgres(b)}) })
}

func benchPages(b *testing.B, o options) {
	o.args = quiet
	s := newServer(b, o)
	team := s.team("readers", share.times(8), "ada")
	ada := team.Members[0]
	env := s.standIn(b)
	for i := range 8 {
		ada.await(ada.launch(team.Project, env, fmt.Sprint("nb-", i)), "running", starting)
	}
	session := s.session(ada.Email)
	for _, page := range []struct{ name, path string }{{"home", "/"}, {"pool", "/pool"}} {
		b.Run(page.name, func(b *testing.B) { benchPage(b, s, page.path, session) })
	}
}

func benchPage(b *testing.B, s *server, path string, session *http.Cookie) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequest("GET", "http://127.0.0.1:"+strconv.Itoa(s.port)+path, nil)
			if err != nil {
				b.Error(err)
				return
			}
			req.AddCookie(session)
			res, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			n, err := io.Copy(io.Discard, res.Body)
			if res.Body.Close(); err != nil || res.StatusCode != http.StatusOK || n == 0 {
				b.Errorf("%s: %s, %d bytes, %v", path, res.Status, n, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}

// BenchmarkLaunchOverhead measures what Weir adds to the start of a notebook:
// the time from a launch until the workspace runs, and that of the same
// program started by hand until it answers, one after the other in turn. Of
// the difference, own-ms is spent until the program is launched; what is left
// is the sandbox, the limits, and looking whether it answers.
//
//	go test -run '^$' -bench LaunchOverhead -benchtime 15x ./e2e
func BenchmarkLaunchOverhead(b *testing.B) {
	s := newServer(b, options{args: quiet})
	team := s.team("hurried", resources{GPUCores: 100, GPUMemoryMiB: 80 << 10, CPUMilli: 1000 * int64(runtime.NumCPU()), MemoryMiB: 4096}, "ada")
	ada := team.Members[0]
	body := map[string]any{"project_id": team.Project, "request": map[string]any{ // as fast as this machine lets Jupyter be
		"gpus": 1, "cores": 50, "cpu_milli": 1000 * runtime.NumCPU(), "memory_mib": 2048}}
	var plain, launched, own []time.Duration
	for b.Loop() {
		plain = append(plain, plainStart(b))
		began := time.Now()
		var w id
		ada.must("POST", "/workspaces", body, &w)
		ada.await(w.ID, "running", starting)
		launched = append(launched, time.Since(began))
		own = append(own, ada.launchedAt(w.ID).Sub(began))
		ada.must("POST", workspacePath(w.ID)+"/stop", nil, nil)
		ada.await(w.ID, "stopped", gone)
	}
	b.ReportMetric(median(plain), "plain-ms")
	b.ReportMetric(median(launched), "launch-ms")
	b.ReportMetric(median(launched)-median(plain), "overhead-ms")
	b.ReportMetric(median(own), "own-ms")
}

// launchedAt is when a workspace's program was launched.
func (a api) launchedAt(workspace int64) time.Time {
	a.s.t.Helper()
	var w struct {
		Events []struct {
			At      time.Time
			Message string
		}
	}
	a.must("GET", workspacePath(workspace), nil, &w)
	for _, e := range w.Events {
		if strings.HasPrefix(e.Message, "Launched") {
			return e.At
		}
	}
	a.s.t.Fatalf("workspace %d was never launched: %v", workspace, w)
	return time.Time{}
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	n := len(times)
	return float64((times[(n-1)/2] + times[n/2]).Microseconds()) / 2000
}

// plainStart is how long Jupyter takes by itself until it answers.
func plainStart(b *testing.B) time.Duration {
	b.Helper()
	program, err := exec.LookPath("jupyter-notebook")
	if err != nil {
		b.Fatal(err)
	}
	home := b.TempDir()
	socket := filepath.Join(home, "s")
	cmd := exec.Command(program, "--no-browser", "--allow-root", "--sock="+socket, "--NotebookApp.token=plain", "--notebook-dir="+home)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // says that it was killed
	}()
	eventually(b, time.Minute, func() string {
		req, err := http.NewRequest("GET", "http://localhost/api/status", nil)
		if err != nil {
			return err.Error()
		}
		req.Header.Set("Authorization", "token plain")
		res, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		if res.Body.Close(); res.StatusCode != http.StatusOK {
			return res.Status
		}
		return ""
	})
	return time.Since(began)
}

// BenchmarkRunStart measures what Weir adds to the start of a run, which takes no time by
// itself: from `weir run` (command), and from a request over REST (request), until its program
// starts. decision is until that request is answered: the run is stored with its shares.
//
//	go test -run '^$' -bench RunStart -benchtime 200x ./e2e
func BenchmarkRunStart(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchRunStart(b, options{}) })
	b.Run("postgres", func(b *testing.B) { benchRunStart(b, options{database: storetest.Postgres(b)}) })
}

func benchRunStart(b *testing.B, o options) {
	o.args = quiet
	s := newServer(b, o)
	team := s.team("runners", share.times(2), "ada")
	ada := team.Members[0]
	body := map[string]any{"project_id": team.Project, "command": []string{"date", "+%s%N"},
		"request": map[string]any{"gpus": 1, "cores": share.GPUCores, "cpu_milli": 500, "memory_mib": 256}}
	var command, request, decision []time.Duration
	for b.Loop() {
		began := time.Now()
		c := ada.runs(team.Project, nil, "date", "+%s%N")
		c.exits(0)
		command = append(command, startedAt(b, c.out.String()).Sub(began))
		began = time.Now()
		var r id
		ada.must("POST", "/runs", body, &r)
		decision = append(decision, time.Since(began))
		output, _ := s.shell(ada.token).run(0, "runs", "log", "--follow", fmt.Sprint(r.ID))
		request = append(request, startedAt(b, output).Sub(began))
	}
	b.ReportMetric(median(command), "command-ms")
	b.ReportMetric(median(request), "request-ms")
	b.ReportMetric(median(decision), "decision-ms")
	b.ReportMetric(float64(decision[99*len(decision)/100].Microseconds())/1000, "decision-p99-ms") // sorted by median
}

// startedAt is when a run started that printed so.
func startedAt(b *testing.B, output string) time.Time {
	b.Helper()
	ns, err := strconv.ParseInt(strings.TrimSpace(output), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, ns)
}
