package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"weir/workspaces/runtime"
)

// BenchmarkStart measures from Start until Poll says running; what it takes
// beyond BenchmarkPlainJupyter is the sandbox's own.
func BenchmarkStart(b *testing.B) {
	r, err := New(config(b.TempDir()))
	if err != nil {
		b.Skip(err)
	}
	defer r.Close()
	spec := notebookSpec(1)
	spec.CPU, spec.Memory = 2000, 2048
	spec.Command = []string{"jupyter-notebook"}
	changed := make(chan int64, 100)
	r.OnChange(func(workspace int64) { changed <- workspace })
	for b.Loop() {
		state, err := r.Start(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		for s := (runtime.Status{}); s.Phase != runtime.PhaseRunning; {
			<-changed
			if s, err = r.Poll(b.Context(), state); err != nil || s.Phase == runtime.PhaseExited {
				b.Fatal(s, err)
			}
		}
		b.StopTimer()
		in, _ := r.parseState(state)
		in.kill()
		for exists(in.dir) {
			r.Stop(b.Context(), state)
		}
		b.StartTimer()
	}
}

// BenchmarkPlainJupyter measures the same Jupyter without a sandbox.
func BenchmarkPlainJupyter(b *testing.B) {
	program, err := exec.LookPath("jupyter-notebook")
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir() // a new home each time, as in a new sandbox
		os.Chown(dir, testUser, testUser)
		os.Chmod(filepath.Dir(dir), 0o755)
		b.StartTimer()
		socket := filepath.Join(dir, "s")
		cmd := exec.Command(program, "--no-browser", "--sock="+socket)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=/usr/bin:/bin", "JUPYTER_TOKEN=x"}
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: testUser, Gid: testUser}
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		for responds := false; !responds; responds, _ = serverResponds(b.Context(), socket, "x") {
			sleep(b.Context(), 2*time.Millisecond)
		}
		b.StopTimer()
		cmd.Process.Kill()
		cmd.Wait()
		b.StartTimer()
	}
}
