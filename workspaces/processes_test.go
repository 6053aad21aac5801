package workspaces_test

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// processes is a Runtime that starts a workspace's command as a child
// process. The real one, workspaces/local, needs root and Jupyter, and cannot
// be made to fail at a given step; this one has real processes, and hooks.
type processes struct {
	mu      sync.Mutex
	running map[[2]int64]*process
	starts  int
	specs   []runtime.Spec
	mounts  []models.Mount // of the last Refresh

	afterLaunch func()                    // the process runs; Start has not returned
	refuse      error                     // of Start
	fixed       error                     // of Refresh
	halfWay     error                     // of Start, when it has launched
	away        error                     // of Poll
	silent      bool                      // what runs never answers
	says        models.Text               // of what does not answer
	warns       models.Text               // of what runs, if anything
	stage       runtime.Stage             // with it
	ended       time.Time                 // of what has exited
	stop        func(runtime.State) error // before a Stop
}

type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func newProcesses(t *testing.T) *processes {
	p := &processes{says: models.Say("starting"), running: map[[2]int64]*process{}}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, one := range p.running {
			_ = one.cmd.Process.Kill() // an error says that it has ended
			<-one.exited
		}
	})
	return p
}

func stateOf(key [2]int64) runtime.State {
	return runtime.State(strconv.FormatInt(key[0], 10) + "/" + strconv.FormatInt(key[1], 10))
}

func (p *processes) find(state runtime.State) (*process, error) {
	ws, gen, ok := strings.Cut(string(state), "/")
	id, err1 := strconv.ParseInt(ws, 10, 64)
	generation, err2 := strconv.ParseInt(gen, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return nil, errors.New("not a state: " + string(state))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[[2]int64{id, generation}], nil
}

func (p *processes) Start(_ context.Context, spec runtime.Spec) (runtime.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return nil, p.refuse
	}
	key := [2]int64{spec.Workspace, spec.Generation}
	if p.running[key] == nil {
		one := &process{cmd: exec.Command(spec.Command[0], spec.Command[1:]...), exited: make(chan struct{})}
		if err := one.cmd.Start(); err != nil {
			return nil, err
		}
		go func() {
			_ = one.cmd.Wait() // the state tells how it ended
			close(one.exited)
		}()
		p.running[key] = one
		p.starts++
		p.specs = append(p.specs, spec)
	}
	if p.afterLaunch != nil {
		p.afterLaunch()
		p.afterLaunch = nil
	}
	if p.halfWay != nil {
		return stateOf(key), p.halfWay
	}
	return stateOf(key), nil
}

func (p *processes) Log(_ context.Context, state runtime.State) (string, error) {
	one, err := p.find(state)
	if err != nil || one == nil {
		return "", err
	}
	return "printed", nil
}

func (p *processes) Poll(_ context.Context, state runtime.State) (runtime.Status, error) {
	one, err := p.find(state)
	if err = cmp.Or(err, p.away); err != nil {
		return runtime.Status{}, err
	}
	if one == nil {
		return runtime.Status{Phase: runtime.PhaseExited, ExitCode: -1, Message: models.Say("gone")}, nil
	}
	select {
	case <-one.exited:
		code := one.cmd.ProcessState.ExitCode()
		return runtime.Status{Phase: runtime.PhaseExited, ExitCode: code, EndedAt: p.ended, Message: models.Say("exited with code %d", code), LogTail: "last words"}, nil
	default:
	}
	if p.silent {
		return runtime.Status{Phase: runtime.PhaseStarting, Progress: 50, Message: p.says, Stage: p.stage}, nil
	}
	message := models.Say("running")
	if !p.warns.Empty() {
		message = p.warns
	}
	return runtime.Status{Phase: runtime.PhaseRunning, Progress: 100, Message: message,
		Endpoint: models.Endpoint{Network: "unix", Address: "/run/" + string(state)}}, nil
}

func (p *processes) Stop(_ context.Context, state runtime.State) error {
	if p.stop != nil {
		if err := p.stop(state); err != nil {
			return err
		}
	}
	one, err := p.find(state)
	if err == nil && one != nil {
		_ = one.cmd.Process.Kill() // an error says that it has ended
	}
	return err
}

func (p *processes) Refresh(_ context.Context, _ runtime.State, mounts []models.Mount) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mounts = mounts
	return p.fixed
}

func (p *processes) List(context.Context) (list []runtime.Instance, err error) {
	for _, key := range p.alive() {
		list = append(list, runtime.Instance{Workspace: key[0], Generation: key[1], State: stateOf(key)})
	}
	return list, nil
}

// alive lists what has not exited.
func (p *processes) alive() (keys [][2]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, one := range p.running {
		select {
		case <-one.exited:
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// count is how many processes were started.
func (p *processes) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// kill ends a workspace's process, as a machine out of memory would.
func (p *processes) kill(workspace, generation int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.running[[2]int64{workspace, generation}].cmd.Process.Kill() // an error says that it has ended
}
