package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/workspaces"
)

// runFlags are the flags of weir run.
type runFlags struct {
	workspace, project, environment     int64
	gpus, cores, gpuMemory, cpu, memory int64
	gpuModel, whenInsufficient, name    string
	directory                           string
	env                                 []string
	limit                               time.Duration
	reservation                         int64
	detach                              bool
	lease                               time.Duration
}

func newRunCommand() *cobra.Command {
	var f runFlags
	var flags *pflag.FlagSet
	cmd := remoteCommand("run [flags] -- COMMAND [ARGUMENT...]", "Run a command that uses a GPU share while it lasts", withCommand,
		func(s *session, args []string) error { return f.run(flags, s, args) })
	flags = cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is its own
	f.bindPlace(flags)
	flags.Int64Var(&f.gpus, "gpus", 0, "`NUMBER` of GPUs")
	flags.Int64Var(&f.cores, "cores", 0, "GPU `CORES` per GPU; a whole GPU is 100 cores")
	flags.Int64Var(&f.gpuMemory, "gpu-memory", 0, "GPU memory per GPU in `MIB`")
	flags.StringVar(&f.gpuModel, "gpu-model", "", "GPU `MODEL`")
	flags.Int64Var(&f.cpu, "cpu", 0, "CPU in thousandths, `MILLI`")
	flags.Int64Var(&f.memory, "memory", 0, "memory in `MIB`")
	flags.Int64Var(&f.reservation, "reservation", 0, "`ID` of your active reservation in which the command runs; its GPUs and its project are the default")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable, `NAME=VALUE`; can be repeated")
	flags.DurationVar(&f.limit, "time", 0, "`DURATION` after which the run is ended, such as 30m; default: no limit")
	flags.StringVar(&f.whenInsufficient, "when-insufficient", workspaces.WhenInsufficientWait,
		"`BEHAVIOR` on insufficient capacity: wait, fewer or refuse")
	flags.StringVar(&f.name, "name", "", "what the run is called in lists; default: as the program")
	flags.BoolVar(&f.detach, "detach", false, "print the ID of the run and do not wait for it")
	flags.DurationVar(&f.lease, "lease", clientLease,
		"`DURATION` after which the run is ended when this command was killed, is suspended or is cut off, 10s to 1h, 0: it goes on; default: 10m, and without end with --detach")
	flags.Lookup("lease").DefValue = "0s" // its text says it
	return cmd
}

// bindPlace adds the flags that say where a run runs.
func (f *runFlags) bindPlace(flags *pflag.FlagSet) {
	flags.Int64Var(&f.workspace, "workspace", 0,
		"`ID` of your workspace whose project, environment and variables the run has [WEIR_WORKSPACE]")
	flags.Int64Var(&f.project, "project", 0, "project `ID`; default: that of the workspace")
	flags.Int64Var(&f.environment, "environment", 0, "environment `ID`; default: that of the workspace, or the best match")
	flags.StringVar(&f.directory, "directory", "",
		"`PATH` in the environment in which the command begins; default: in a workspace the current directory, elsewhere the home directory")
}

// withCommand checks that there is a command to run.
func withCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no command: write it after --, for example: weir run --project 1 -- python train.py")
	}
	return nil
}

// input is the run that the flags describe.
func (f *runFlags) input(s *session, flags *pflag.FlagSet, command []string) (workspaces.RunInput, error) {
	in := workspaces.RunInput{WorkspaceID: f.workspace, ProjectID: f.project, EnvironmentID: f.environment, Command: command, Name: f.name,
		ReservationID: f.reservation, TimeLimitSeconds: int64(f.limit / time.Second), WhenInsufficient: f.whenInsufficient}
	if f.workspace == 0 && f.project == 0 {
		in.WorkspaceID, _ = strconv.ParseInt(os.Getenv("WEIR_WORKSPACE"), 10, 64)
	}
	if in.WorkspaceID == 0 {
		if err := s.projectOf(&in.ProjectID, f.reservation); err != nil {
			return in, err
		}
	}
	if in.WorkspaceID == 0 && in.ProjectID == 0 {
		return in, config.Usagef("no project: set --project, or --workspace, WEIR_WORKSPACE or --reservation")
	}
	if f.limit != 0 && in.TimeLimitSeconds < 1 {
		return in, config.Usagef("--time: %s must be at least 1s", f.limit)
	}
	for name, amount := range map[string]struct {
		value *int64
		field **int64
	}{"gpus": {&f.gpus, &in.Request.GPUs}, "cores": {&f.cores, &in.Request.Cores}, "gpu-memory": {&f.gpuMemory, &in.Request.GPUMemoryMiB},
		"cpu": {&f.cpu, &in.Request.CPUMilli}, "memory": {&f.memory, &in.Request.MemoryMiB}} {
		if flags.Changed(name) {
			*amount.field = amount.value
		}
	}
	if in.Directory = f.directory; s.inside { // the run has the same directories, but a /tmp of its own
		dir, err := filepath.Abs(f.directory)
		if err != nil {
			return in, fmt.Errorf("the current directory is not known: %w", err)
		}
		if f.directory != "" || dir != "/tmp" && !strings.HasPrefix(dir, "/tmp/") {
			in.Directory = dir
		}
	}
	if f.gpuModel != "" {
		in.Request.GPUModel = &f.gpuModel
	}
	var p models.Problems
	in.Request.Env = models.ParseEnv("--env", strings.Join(f.env, "\n"), &p)
	if err := p.Err(); err != nil {
		return in, config.Usagef("--env: each must be NAME=VALUE")
	}
	return in, nil
}

func (f *runFlags) run(flags *pflag.FlagSet, s *session, command []string) error {
	in, err := f.input(s, flags, command)
	if err != nil {
		return err
	}
	switch lease := int64(f.lease / time.Second); {
	case f.detach && flags.Changed("lease"):
		return config.Usagef("--lease: --detach does not wait for the run")
	case f.lease != 0 && lease < 1:
		return config.Usagef("--lease: %s must be at least 1s", f.lease)
	case !f.detach && lease > 0:
		in.Attached, in.LeaseSeconds = true, lease
	}
	res, err := s.once("/runs", in)
	if err != nil {
		return err
	}
	var r handlers.Run
	if err := decode(s.client, res.body, &r); err != nil {
		return err
	}
	if f.detach {
		return s.show(res.body, func(t *table) { t.line("%d", r.ID) })
	}
	return s.attach(r)
}

func newRunsCommand() *cobra.Command {
	cmd := listCommand("runs", "live", runsTable)
	cmd.AddCommand(newRunLogCommand(), newRunStopCommand(), newRunDeleteCommand())
	return cmd
}

func runsTable(t *table, list []handlers.Run) {
	t.section("ID", "PROGRAM", "STATE", "EXIT CODE", "PROJECT", "USER", "REQUEST", "REQUESTED", "STARTED", "ENDED", "REASON")
	for _, r := range list {
		t.row(r.ID, r.Name, r.State, exitWords(r), r.Project, r.User, demandText(r.Demand), moment(r.RequestedAt), momentOr(r.StartedAt, ""),
			momentOr(r.EndedAt, ""), r.Reason)
	}
}

func exitWords(r handlers.Run) string {
	if r.ExitCode == nil {
		return ""
	}
	return fmt.Sprint(*r.ExitCode)
}

func newRunLogCommand() *cobra.Command {
	var follow bool
	cmd := remoteCommand("log RUN", "Print what a run has printed", cobra.ExactArgs(1), func(s *session,
		args []string) error {
		id, err := parseID(args[0], "run")
		if err != nil {
			return err
		}
		return s.copyLog(s, id, follow)
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue until the run has ended")
	return cmd
}

func newRunStopCommand() *cobra.Command {
	return remoteCommand("stop RUN", "Stop a run: SIGTERM, and SIGKILL after a grace period", cobra.ExactArgs(1), func(s *session,
		args []string) error {
		id, err := parseID(args[0], "run")
		if err != nil {
			return err
		}
		return send(s, http.MethodPost, runPath(id)+"/stop", nil, "", func(t *table, r handlers.Run) { runsTable(t, []handlers.Run{r}) })
	})
}

func newRunDeleteCommand() *cobra.Command {
	return confirmable(remoteCommand("delete RUN", "Delete a run that has ended, with its output", cobra.ExactArgs(1), func(s *session,
		args []string) error {
		id, err := parseID(args[0], "run")
		if err != nil {
			return err
		}
		if err := s.confirm("Run %d and its output will be deleted.", id); err != nil {
			return err
		}
		_, err = s.call(s, http.MethodDelete, runPath(id), nil, "")
		return err
	}))
}
