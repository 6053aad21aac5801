package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"weir/cmd/weir/config"
	"weir/pool"
	"weir/pool/nvml"
)

// idFiles are where Linux keeps what tells a machine from all others.
var idFiles = []string{"/etc/machine-id", "/sys/class/dmi/id/product_uuid"}

// identityOf is what tells this machine from all others: the contents of the
// file, or of the first that there is.
func identityOf(file string) (string, error) {
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
			err = fmt.Errorf("%s is too short for an identity", f)
		}
		failed = append(failed, err)
	}
	return "", fmt.Errorf("nothing tells this machine from others: %w; name a file that does with --machine-id-file", errors.Join(failed...))
}

// machine chooses between simulated GPUs, real ones, and none. The seed tells
// the simulated ones from those of other machines. Close it at the end.
func machine(cfg config.Config, seed string) (pool.Machine, io.Closer, error) {
	drivers := nvml.Config{MPSDir: cfg.MPSDir()}
	var list []pool.Inventory
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
	driver, err := drivers.Open()
	if errors.Is(err, nvml.ErrNoDriver) {
		return nvml.Join(), closers{}, nil
	}
	return driver, closers{driver}, err
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
