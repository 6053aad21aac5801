// Command weir is the portal, the API, the controllers and the command line
// of Weir.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // lending hours have zones, and an image need not have a list of them

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/pool/agent"
)

// Exit codes that scripts can rely on.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2 // the command line or the configuration is wrong

	exitRefused     = 3 // the portal does not permit it; an agent is shut out, and starting it again does not help
	exitNotFound    = 4 // what was named is not there
	exitConflict    = 5 // it does not go with how things are now, or somebody else was faster
	exitUnreachable = 6 // the portal cannot be reached, or cannot answer now
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "Weir pools GPUs and gives teams Jupyter workspaces on them",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServeCommand(), newAgentCommand(), newMigrateCommand(), newAdminCommand(), newVersionCommand(), newOpenAPICommand(), newSimulateCommand(),
		newPoolCommand(), newProviderCommand(), newDeviceCommand(), newAuthorizeRemotelyCommand())
	return root
}

// run executes one command line and returns the exit code. The first signal
// cancels the command's context, a second one ends the process.
func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	started := false
	noteStart(root, &started)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errOut, "weir: %v\n", err)
	if !started {
		fmt.Fprintf(errOut, "See “%s --help”.\n", cmd.CommandPath())
		return exitUsage
	}
	if usage := (*config.UsageError)(nil); errors.As(err, &usage) {
		return exitUsage
	}
	if coded := interface{ exitCode() int }(nil); errors.As(err, &coded) {
		return coded.exitCode()
	}
	if errors.Is(err, agent.ErrShutOut) {
		return exitRefused
	}
	return exitError
}

// noteStart sets *started once any command runs: cobra returns a mistake on
// the command line and a command's own failure alike as plain errors. It
// also makes a group of commands refuse a name it does not know, which cobra
// does for the root alone.
func noteStart(cmd *cobra.Command, started *bool) {
	if cmd.HasParent() && cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, runGroup
	}
	if runE := cmd.RunE; runE != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return runE(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		noteStart(sub, started)
	}
}

func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return config.Usagef("%s has no command %q", cmd.CommandPath(), args[0])
	}
	return cmd.Help()
}
