package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
)

// Run executes one command line and returns the exit code. The first signal
// cancels the command's context, a second one ends the process.
func Run(root *cobra.Command, args []string, out, errOut io.Writer) int {
	ctx, stop := canceledBySignal()
	defer stop()

	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	started := false
	prepare(root, &started)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintf(errOut, "weir: %v\n", err)
	}
	if err != nil && !started {
		fmt.Fprintf(errOut, "Run “%s --help” for usage.\n", cmd.CommandPath())
		return ExitUsage
	}
	return exitCode(err)
}

// prepare makes each command below cmd set *started when it runs, because cobra
// does not distinguish usage errors from errors of a command. It also makes
// groups of commands refuse unknown names, which cobra does for the root only.
func prepare(cmd *cobra.Command, started *bool) {
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
		prepare(sub, started)
	}
}

func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return config.Usagef("unknown command %[2]q for %[1]q", cmd.CommandPath(), args[0])
	}
	return cmd.Help()
}
