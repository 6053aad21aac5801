package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/pool/agent"
	"weir/pool/nvml"
	"weir/pool/providers"
	"weir/workspaces/local"
)

// idFiles are the files in which Linux stores the identity of a machine.
var idFiles = []string{"/etc/machine-id", "/sys/class/dmi/id/product_uuid"}

// machineIdentity returns the unique identity of this machine: the content of
// the file, or of the first of idFiles that exists.
func machineIdentity(file string) (string, error) {
	files := idFiles
	if file != "" {
		files = []string{file}
	}
	var failed []error
	for _, f := range files {
		raw, err := os.ReadFile(f)
		text := strings.TrimSpace(string(raw))
		if err == nil && len(text) >= 8 {
			return text, nil
		}
		if err == nil {
			err = fmt.Errorf("%s is too short", f)
		}
		failed = append(failed, err)
	}
	return "", fmt.Errorf("cannot identify this machine: %w; set --machine-id-file", errors.Join(failed...))
}

// openGPUs opens simulated GPUs, or those of the driver, which may be loaded later. The seed makes the ids of
// simulated GPUs unique to the machine. The caller closes the result.
func openGPUs(cfg config.Config, seed string) (providers.Machine, io.Closer, error) {
	drivers := nvml.Config{MPSDir: cfg.MPSDir()}
	var list []providers.Machine
	var open closers
	for _, s := range cfg.SimulateGPUs {
		driver, err := drivers.Simulated(s.Model, s.Count, seed)
		if err != nil {
			return nil, nil, errors.Join(err, open.Close())
		}
		list, open = append(list, driver), append(open, driver)
	}
	if len(list) > 0 {
		return nvml.Join(list...), open, nil
	}
	machine := drivers.Late()
	return machine, machine, nil
}

// closers are closed together.
type closers []io.Closer

func (c closers) Close() error {
	var failed []error
	for _, one := range c {
		failed = append(failed, one.Close())
	}
	return errors.Join(failed...)
}

// registerMachine registers the GPUs and environments of this machine.
func (p *portal) registerMachine(ctx context.Context) (err error) {
	if p.host.Name, err = os.Hostname(); err != nil {
		return err
	}
	identity, err := machineIdentity(p.cfg.MachineIDFile)
	if err != nil {
		if p.cfg.MachineIDFile != "" {
			return err
		}
		identity = p.host.Name // enough: no agent enrolls from here
	}
	p.host.Digest = providers.MachineDigest(identity)
	if p.gpus, p.gpuDriver, err = openGPUs(p.cfg, p.host.Name); err != nil {
		return err
	}
	if p.cfg.Runtime == "kube" { // its nodes have agents, and environments name images
		return nil
	}
	if err := p.providers.Enlist(ctx, p.host, p.gpus); err != nil {
		return fmt.Errorf("cannot register the GPUs of this machine: %w", err)
	}
	p.unchecked, err = p.registerEnvironments(ctx)
	return err
}

// registerEnvironments registers the environments of this machine and reports how many
// could not be checked.
func (p *portal) registerEnvironments(ctx context.Context) (unchecked int, err error) {
	found := local.Discover(ctx, uint32(p.cfg.SandboxUID))
	for _, e := range found {
		if e.Unchecked() {
			unchecked++
		}
	}
	return unchecked, p.catalog.Register(ctx, found)
}

// recheckPeriod is the interval between checks of environments while checks run out of time.
const recheckPeriod = 30 * time.Second

// checkEnvironments repeats the check of this machine's environments, of which some are
// unchecked, until each has ended.
func checkEnvironments(ctx context.Context, log *slog.Logger, unchecked int, check func(context.Context) (unchecked int, err error)) {
	for unchecked > 0 {
		log.WarnContext(ctx, "the checks of environments ran out of time and are repeated", "environments", unchecked, "after", recheckPeriod)
		select {
		case <-ctx.Done():
			return
		case <-time.After(recheckPeriod):
		}
		n, err := check(ctx)
		if err != nil {
			log.ErrorContext(ctx, "cannot register the environments of this machine", "err", err)
			continue
		}
		unchecked = n
	}
}

// migInstanceFiles returns the device files of a MIG instance.
func (p *portal) migInstanceFiles(ctx context.Context, uuid string) ([]string, error) {
	driver, ok := p.gpus.(interface {
		Files(ctx context.Context, uuid string) ([]string, error)
	})
	if !ok {
		return nil, fmt.Errorf("unknown MIG instance %s", uuid)
	}
	return driver.Files(ctx, uuid)
}

// reportPeriod is the interval between reports of this machine's GPUs.
const reportPeriod = 5 * time.Second

// localProvider reports the portal's own GPUs as an agent would.
type localProvider struct{ *providers.Service }

func (m localProvider) Heartbeat(ctx context.Context, b providers.Heartbeat) (providers.Orders, error) {
	o, err := m.Report(ctx, b)
	o.Every = reportPeriod
	return o, err
}

// reportOwnGPUs reports this machine's GPUs until ctx ends.
func (p *portal) reportOwnGPUs(ctx context.Context) {
	loop := agent.Loop{Portal: localProvider{p.providers}, Machine: p.gpus, Digest: p.host.Digest, Log: p.log}
	if err := loop.Run(ctx); err != nil {
		p.log.ErrorContext(ctx, "stopped reporting the GPUs of this machine", "err", err)
	}
}

// hostResources is the CPU and memory of this machine.
func hostResources() models.Resources {
	r := models.Resources{CPUMilli: int64(runtime.NumCPU()) * 1000}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		r.MemoryMiB = int64(info.Totalram) * int64(info.Unit) >> 20
	}
	return r
}
