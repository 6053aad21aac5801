package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/handlers"
)

// command is a weir run that goes on.
type command struct {
	t           testing.TB
	cmd         *exec.Cmd
	out, errOut transcript
	done        chan struct{} // closed when it has ended
}

// runs begins weir run as a member, with GPUs of the size of share.
func (m member) runs(project int64, flags []string, words ...string) *command {
	m.s.t.Helper()
	args := append([]string{"run", "--project", fmt.Sprint(project), "--gpus", "1", "--cores", fmt.Sprint(share.GPUCores), "--gpu-memory", fmt.Sprint(share.GPUMemoryMiB),
		"--cpu", "500", "--memory", "256"}, flags...)
	return m.begins(append(append(args, "--"), words...)...)
}

// begins starts a command as a member.
func (m member) begins(args ...string) *command {
	m.s.t.Helper()
	bin, err := program()
	if err != nil {
		m.s.t.Fatal(err)
	}
	c := &command{t: m.s.t, cmd: exec.Command(bin, args...), done: make(chan struct{})}
	c.cmd.Env = environment(m.s.shell(m.token).env)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.errOut
	if err := c.cmd.Start(); err != nil {
		m.s.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // how it ended is read from its state
		close(c.done)
	}()
	m.s.t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.done
	})
	return c
}

// prints waits for words on standard output.
func (c *command) prints(words string) {
	c.t.Helper()
	c.writes(&c.out, words)
}

// notes waits for words on standard error.
func (c *command) notes(words string) {
	c.t.Helper()
	c.writes(&c.errOut, words)
}

func (c *command) writes(to fmt.Stringer, words string) {
	c.t.Helper()
	eventually(c.t, starting, func() string {
		if strings.Contains(to.String(), words) {
			return ""
		}
		return fmt.Sprintf("it prints %q and %q, not %q", c.out.String(), c.errOut.String(), words)
	})
}

// exits waits for an exit code.
func (c *command) exits(want int) {
	c.t.Helper()
	eventually(c.t, starting, func() string {
		select {
		case <-c.done:
			return ""
		default:
			return fmt.Sprintf("it has not ended; it prints %q and %q", c.out.String(), c.errOut.String())
		}
	})
	if code := c.cmd.ProcessState.ExitCode(); code != want {
		c.t.Errorf("exit code %d, want %d; it prints %q and %q", code, want, c.out.String(), c.errOut.String())
	}
}

// trap is a program that says which signal ends it.
const trap = `trap 'echo got INT; exit 4' INT; trap 'echo got TERM; exit 5' TERM; echo waits; while :; do sleep 0.1; done`

// A run has the GPU share, the directories and the exit code of its program, and gives the
// share back at its end.
func TestRun(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("runners", share.times(2), "ada")
	ada := team.Members[0]
	sh := s.shell(ada.token)
	home := fmt.Sprintf("/notebook/%d/%d", team.Project, ada.ID)
	c := ada.runs(team.Project, nil, "/bin/sh", "-c", `echo "$CUDA_VISIBLE_DEVICES$NVIDIA_VISIBLE_DEVICES|$1"; echo kept > `+home+`/result; exit 7`, "sh", "two words")
	c.exits(7)
	if !strings.Contains(c.out.String(), "|two words\n") {
		t.Errorf("it printed %q", c.out.String())
	}
	if got := s.reads(home + "/result"); got != "kept\n" {
		t.Errorf("the file is %q", got)
	}
	for _, sig := range []struct {
		signal syscall.Signal
		says   string
		code   int
	}{{syscall.SIGINT, "got INT\n", 4}, {syscall.SIGTERM, "got TERM\n", 5}} {
		c := ada.runs(team.Project, nil, "/bin/sh", "-c", trap)
		c.prints("waits\n")
		if err := c.cmd.Process.Signal(sig.signal); err != nil {
			t.Fatal(err)
		}
		c.exits(sig.code)
		if !strings.HasSuffix(c.out.String(), sig.says) {
			t.Errorf("it printed %q", c.out.String())
		}
	}
	limited := ada.runs(team.Project, []string{"--time", "1s"}, "sleep", "600")
	limited.exits(143)
	if !strings.Contains(limited.errOut.String(), "time limit of 1s") {
		t.Errorf("it says %q", limited.errOut.String())
	}
	ada.runs(team.Project, nil, "/no/such/program").exits(127)
	sh.fails(2, fmt.Sprintf("your role's limit is %d", 2*share.GPUCores), "run", "--project", fmt.Sprint(team.Project), "--gpus", "3", "--cores", fmt.Sprint(share.GPUCores), "--", "true")
	var runs []handlers.Run
	for _, r := range list[handlers.Run](ada.api, "/runs") {
		if r.State != "ended" || len(r.Shares) != 0 {
			t.Errorf("run %d is %s with %v", r.ID, r.State, r.Shares)
		}
		runs = append(runs, r)
	}
	if len(runs) != 5 {
		t.Errorf("%d runs", len(runs))
	}
}

// A run that does not fit waits, says so, and starts when there is room.
func TestRunWaits(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:1"})
	team := s.team("waiters", share.times(4), "ada")
	ada := team.Members[0]
	sh := s.shell(ada.token)
	var ids []string
	for range 2 {
		out, _ := sh.run(0, "run", "--detach", "--project", fmt.Sprint(team.Project), "--gpus", "1", "--cores", fmt.Sprint(share.GPUCores), "--gpu-memory", fmt.Sprint(share.GPUMemoryMiB),
			"--cpu", "500", "--memory", "256", "--", "sleep", "600")
		ids = append(ids, strings.TrimSpace(out))
	}
	c := ada.runs(team.Project, nil, "echo", "my turn")
	eventually(t, starting, func() string {
		if strings.Contains(c.errOut.String(), "waits at position 1, estimated start ") {
			return ""
		}
		return fmt.Sprintf("it says %q", c.errOut.String())
	})
	sh.run(0, "runs", "stop", ids[0])
	c.exits(0)
	if c.out.String() != "my turn\n" {
		t.Errorf("it printed %q", c.out.String())
	}
	sh.run(0, "runs", "stop", ids[1])
	for _, id := range ids {
		eventually(t, gone, func() string {
			var r handlers.Run
			ada.must("GET", "/runs/"+id, nil, &r)
			if r.State == "ended" && r.ExitCode != nil && *r.ExitCode == 143 {
				return ""
			}
			return fmt.Sprintf("run %s is %s", id, r.State)
		})
		sh.run(0, "runs", "delete", "--yes", id)
	}
}

// The run of a client that was killed gives its GPU back when its lease is over; one of weir run
// --detach goes on.
func TestRunOfAKilledClient(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("waiters", share.times(2), "ada")
	ada := team.Members[0]
	c := ada.runs(team.Project, []string{"--lease", "20s"}, "/bin/sh", "-c", "echo begun; sleep 600")
	c.prints("begun\n")
	detached := ada.runs(team.Project, []string{"--detach"}, "sleep", "600")
	detached.exits(0)
	id := list[handlers.Run](ada.api, "/runs")[1].ID
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, func() string {
		var r handlers.Run
		ada.must("GET", fmt.Sprintf("/runs/%d", id), nil, &r)
		if r.State == "ended" && len(r.Shares) == 0 && r.Reason == "The client that waited for it was away for 20 seconds." {
			return ""
		}
		return fmt.Sprintf("it is %s with %v: %s", r.State, r.Shares, r.Reason)
	})
	var other handlers.Run
	ada.must("GET", "/runs/"+strings.TrimSpace(detached.out.String()), nil, &other)
	if other.State != "running" && other.State != "starting" {
		t.Errorf("the detached one is %s: %s", other.State, other.Reason)
	}
	ada.must("POST", fmt.Sprintf("/runs/%d/stop", other.ID), nil, nil)
	eventually(t, gone, func() string {
		if live := list[handlers.Run](ada.api, "/runs?state=live"); len(live) > 0 {
			return fmt.Sprintf("run %d is %s", live[0].ID, live[0].State)
		}
		return ""
	})
}

// A run goes on when the server is killed, and the command that waits for it gets all of its
// output and its exit code.
func TestRunSurvivesKill(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		team := s.team("survivors", share, "ada")
		ada := team.Members[0]
		home := fmt.Sprintf("/notebook/%d/%d", team.Project, ada.ID)
		c := ada.runs(team.Project, nil, "/bin/sh", "-c", `echo begun; while [ ! -e `+home+`/go ]; do sleep 0.1; done; echo done; exit 9`)
		c.prints("begun\n")
		s.kill()
		s.writes(home+"/go", "")
		s.start()
		c.exits(9)
		if got := c.out.String(); got != "begun\ndone\n" {
			t.Errorf("it printed %q", got)
		}
		var out bytes.Buffer
		for _, r := range list[handlers.Run](ada.api, "/runs") {
			log, _ := s.shell(ada.token).run(0, "runs", "log", strconv.FormatInt(r.ID, 10))
			out.WriteString(log)
			if len(r.Shares) != 0 || r.ExitCode == nil || *r.ExitCode != 9 {
				t.Errorf("%+v", r)
			}
		}
		if out.String() != "begun\ndone\n" {
			t.Errorf("the log is %q", out.String())
		}
	})
}

// A server that is killed at any step of a run finds it again.
func TestRunSurvivesFailpoints(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("unlucky", share, "ada")
	ada := team.Members[0]
	for _, step := range []string{"run.intent", "run.launched", "run.ended"} {
		s.stop()
		s.start("WEIR_FAILPOINT=" + step)
		ada.call("POST", "/runs", map[string]any{"project_id": team.Project, "command": []string{"/bin/sh", "-c", "echo " + step + "; exit 9"},
			"request": map[string]any{"gpus": 1, "cores": share.GPUCores, "gpu_memory_mib": share.GPUMemoryMiB, "cpu_milli": 500, "memory_mib": 256}}, nil)
		if code := s.wait(); code != -1 {
			t.Fatalf("%s: the server ended with exit code %d", step, code)
		}
		s.start()
		newest := list[handlers.Run](ada.api, "/runs")[0]
		if log, _ := s.shell(ada.token).run(0, "runs", "log", "--follow", fmt.Sprint(newest.ID)); log != step+"\n" {
			t.Errorf("%s: it printed %q", step, log)
		}
		ada.must("GET", fmt.Sprintf("/runs/%d", newest.ID), nil, &newest)
		if newest.State != "ended" || newest.ExitCode == nil || *newest.ExitCode != 9 || len(newest.Shares) != 0 {
			t.Errorf("%s: %+v", step, newest)
		}
	}
	if all := list[handlers.Run](ada.api, "/runs"); len(all) != 3 {
		t.Errorf("%d runs", len(all))
	}
}
