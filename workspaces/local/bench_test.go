package local

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// BenchmarkStart measures from Start until Poll says running, with and without a network
// of its own, also with 64 hosts that alone may be reached; what it takes beyond BenchmarkPlainJupyter is the sandbox's own.
func BenchmarkStart(b *testing.B) {
	r, err := New(config(b.TempDir()))
	if err != nil {
		b.Skip(err)
	}
	defer r.Close()
	if r.network.missing.Empty() {
		b.Run("network=own", func(b *testing.B) { benchmarkStart(b, r, nil) })
		var listed runtime.Outgoing
		for i := range byte(64) {
			listed.Networks = append(listed.Networks, netip.PrefixFrom(netip.AddrFrom4([4]byte{3 * i, 5 * i, 7 * i, i}), 32))
		}
		b.Run("network=listed", func(b *testing.B) { benchmarkStart(b, r, &listed) })
	}
	r.network.missing = models.Say("not in this benchmark")
	b.Run("network=shared", func(b *testing.B) { benchmarkStart(b, r, nil) })
}

func benchmarkStart(b *testing.B, r *Runtime, outgoing *runtime.Outgoing) {
	spec := notebookSpec(1)
	spec.Outgoing = outgoing
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
			models.Sleep(b.Context(), 2*time.Millisecond)
		}
		b.StopTimer()
		cmd.Process.Kill()
		cmd.Wait()
		b.StartTimer()
	}
}

const download = 1 << 30 // bytes

// downloading prints the bytes per second of a download.
const downloading = `import socket, sys, time
host, port = sys.argv[1].split(":")
with socket.create_connection((host, int(port))) as c:
    began, n, buffer = time.monotonic(), 0, bytearray(1 << 20)
    while got := c.recv_into(buffer):
        n += got
    print(int(n / (time.monotonic() - began)))
`

// BenchmarkDownload measures one connection from outside into a workspace, and over the
// loopback interface of this machine, with the same client.
func BenchmarkDownload(b *testing.B) {
	r, err := New(config(b.TempDir()))
	if err != nil {
		b.Skip(err)
	}
	defer r.Close()
	separateNetwork(b, r)
	serve := func(conn net.Conn) {
		block := make([]byte, 1<<20)
		for range download / len(block) {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	}
	other := otherMachine(b, serve)
	b.Run("network=own", func(b *testing.B) {
		for b.Loop() {
			state, err := r.Start(b.Context(), scriptSpec(1, "exec python3 -c '"+downloading+"' "+other))
			if err != nil {
				b.Fatal(err)
			}
			s := runtime.Status{}
			for s.Phase != runtime.PhaseExited {
				if s, err = r.Poll(b.Context(), state); err != nil {
					b.Fatal(err)
				}
				models.Sleep(b.Context(), 10*time.Millisecond)
			}
			reportRate(b, []byte(s.LogTail))
			for in, _ := r.parseState(state); exists(in.dir); {
				r.Stop(b.Context(), state)
			}
		}
	})
	b.Run("loopback", func(b *testing.B) {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer listener.Close()
		accept(listener, serve)
		for b.Loop() {
			out, err := exec.Command("python3", "-c", downloading, listener.Addr().String()).Output()
			if err != nil {
				b.Fatal(err)
			}
			reportRate(b, out)
		}
	})
}

func reportRate(b *testing.B, printed []byte) {
	rate, err := strconv.ParseFloat(strings.TrimSpace(string(printed)), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate/1e6, "MB/s")
}
