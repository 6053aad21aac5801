package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/cli"
	"weir/cmd/weir/config"
	"weir/models"
	"weir/pool/agent"
	"weir/pool/providers"
)

func newAgentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "Lend the GPUs of this machine to a portal", Args: cobra.NoArgs,
		Long: "Lend the GPUs of this machine to a portal.\n\nOn a machine that is not enrolled, without a code, it prints the GPU code and the next steps, and exits.\n" +
			"A node of a cluster can enroll without a code: see --cluster-token-file.\n" +
			"The exit code is 3 if the portal has revoked the agent: it must be enrolled again."}
	config.AddFlags(cmd, config.ForAgent...)
	output := bindOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		identity, err := machineIdentity(cfg.MachineIDFile)
		if err != nil {
			return err
		}
		if cfg.Name == "" {
			if cfg.Name, err = os.Hostname(); err != nil {
				return err
			}
		}
		digest := providers.MachineDigest(identity)
		gpus, open, err := openGPUs(cfg, digest)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, open.Close()) }()
		enrolled, err := agent.Enrolled(cfg.StateDir)
		if err == nil && cfg.ClusterTokenFile == "" { // a node of a cluster need not have a GPU
			if _, none := someDevices(cmd.Context(), gpus); errors.Is(none, errNoGPUs) { // other errors may pass
				err = none
			}
		}
		byCode, byCluster := cfg.Code != "", cfg.ClusterTokenFile != ""
		switch {
		case err != nil:
			return err
		case !enrolled && !byCode && !byCluster:
			code, err := gpuCodeOf(cmd.Context(), digest, cfg.Name, gpus)
			if err != nil {
				return err
			}
			return output.write(cmd.OutOrStdout(), code)
		case !enrolled && cfg.Server == "":
			return config.Usagef("--server is required")
		}
		err = agent.Run(cmd.Context(), agent.Config{
			Dir: cfg.StateDir, Server: cfg.Server, Code: cfg.Code, Name: cfg.Name, Digest: digest, Machine: gpus,
			Cluster: agent.Cluster{TokenFile: cfg.ClusterTokenFile, Authority: cfg.AuthorityCertificate},
			Clock:   models.WallClock, Log: cfg.Logger(cmd.ErrOrStderr())})
		if errors.Is(err, agent.ErrShutOut) {
			err = cli.WithExitCode(err, cli.ExitRefused)
		}
		return err
	}
	return cmd
}

// gpuCode is the output on a machine that is not enrolled.
type gpuCode struct {
	GPUCode string                   `json:"gpu_code"`
	Machine string                   `json:"machine"`
	Devices []providers.DeviceReport `json:"devices"`
}

func gpuCodeOf(ctx context.Context, digest, name string, gpus providers.Inventory) (gpuCode, error) {
	devices, err := someDevices(ctx, gpus)
	return gpuCode{GPUCode: providers.GPUCodeOf(digest, devices), Machine: name, Devices: devices}, err
}

// someDevices are the GPUs of this machine, of which there must be one. A driver that is loaded late is found by
// the next start.
func someDevices(ctx context.Context, gpus providers.Inventory) ([]providers.DeviceReport, error) {
	devices, err := gpus.Devices(ctx)
	if err == nil && len(devices) == 0 {
		err = errNoGPUs
	}
	return devices, err
}

var errNoGPUs = errors.New("no GPUs found: the NVIDIA driver is missing or not loaded yet, or reports none")

func (c gpuCode) String() string {
	counts := map[string]int{}
	for _, d := range c.Devices {
		name := d.Model
		if d.Simulated {
			name += " (simulated)"
		}
		if d.Parent == "" {
			counts[name]++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "GPU code  %s\nMachine   %s\n", c.GPUCode, c.Machine)
	for _, model := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "GPUs      %d × %s\n", counts[model], model)
	}
	fmt.Fprintf(&b, `
Next:
1. An administrator authorizes this GPU code in the portal, under Pool, with “weir authorize %[1]s”, or on
   the portal's machine with
     weir admin authorize --gpu-code %[1]s --owner EMAIL
   and gets an authorization code, valid for 15 minutes.
2. Start the agent with it, here:
     weir agent --server http://PORTAL:8080 --code CODE`, c.GPUCode)
	return b.String()
}
