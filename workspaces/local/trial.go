package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"weir/models"
)

// networkTrial is what the result of a trial depends on.
type networkTrial struct {
	user                identity
	helper, nsenter, ip string
}

// networkTrials are the results, which the Runtimes of a process share: functions that
// return why sandboxes share the network of the machine.
var networkTrials sync.Map

// tryNetwork connects an empty sandbox once: programs that are installed may be too old, or
// the machine may forbid what they do. Workspaces then share the network of the machine.
func (r *Runtime) tryNetwork() {
	if !r.network.missing.Empty() {
		return
	}
	of := networkTrial{r.user, r.network.helper, r.network.nsenter, r.network.ip}
	result, _ := networkTrials.LoadOrStore(of, sync.OnceValue(func() models.Text {
		err := r.connectTrial()
		if err == nil {
			return models.Text{}
		}
		if passing(err) { // then each start says so itself
			r.config.Logger.Warn("whether sandboxes can have a network of their own is not known", "error", err)
			return models.Text{}
		}
		r.config.Logger.Warn("workspaces share the network of this machine", "error", err)
		return models.Say("shared with this machine and other workspaces: slirp4netns does not work here: %s", err.Error())
	}))
	r.network.missing = result.(func() models.Text)()
}

// connectTrial starts a sandbox and its way out as those of a workspace, and ends both.
func (r *Runtime) connectTrial() error {
	in := &instance{dir: filepath.Join(r.config.Dir, "trial")}
	in.UID, in.GID, in.Boot = r.user.uid, r.user.gid, bootID()
	if err := errors.Join(os.RemoveAll(in.dir), os.Mkdir(in.dir, 0o700), unix.Mkfifo(in.networkFile(), 0o600)); err != nil {
		return err
	}
	defer os.RemoveAll(in.dir)
	box := newSandbox(r.tool, r.user)
	defer box.close()
	box.system(0, 0)
	box.add("--setenv", "PATH", "/usr/bin:/bin")
	in.unblock = box.ownNetwork(in.networkFile())
	defer in.release()
	gated, err := r.startGated(in, box, []string{"true"})
	if err != nil {
		return err
	}
	defer gated.kill()
	p, err := readProcess(gated.cmd.Process.Pid)
	if err != nil {
		return err
	}
	in.PID, in.Started = p.pid, p.started
	if err := gated.open(); err != nil {
		return err
	}
	defer in.kill()
	if err := r.connectFirst(r.ctx, in); err != nil {
		return err
	}
	if !in.innerAlive(in.sandboxStatus()) { // it waits to be released
		return fmt.Errorf("bubblewrap: %s", lastLine(readEnd(in.logFile(), 1<<10)))
	}
	return nil
}
