package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker in a release build.
var (
	version string
	commit  string
)

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildVersion returns the version set by the linker, or else that of Go's build
// information.
func buildVersion() versionInfo {
	v := versionInfo{Version: version, Commit: commit, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	if ok && v.Commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

func (v versionInfo) String() string {
	s := "weir " + v.Version
	if v.Commit != "" {
		s += " (" + v.Commit + ")"
	}
	return s + " " + v.Go + " " + v.Platform
}

func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version information",
		Args:  cobra.NoArgs,
	}
	output := bindOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return output.write(cmd.OutOrStdout(), buildVersion())
	}
	return cmd
}
