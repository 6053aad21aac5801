package nvml

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Files are the files of a device, without the shared control files: for an instance
// those of its GPU and of its capabilities. It returns an error for an unknown
// UUID.
func (d *Driver) Files(ctx context.Context, uuid string) ([]string, error) {
	gpus, err := d.gpus(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range gpus {
		file := fmt.Sprintf("/dev/nvidia%d", g.Minor)
		if g.UUID == uuid {
			return []string{file}, nil
		}
		for _, i := range d.instances(g) {
			if i.UUID == uuid {
				caps, err := d.capabilities(i)
				return append([]string{file}, caps...), err
			}
		}
	}
	return nil, fmt.Errorf("nvml: there is no GPU %s", uuid)
}

// capabilities are the capability files of an instance.
func (d *Driver) capabilities(i instance) ([]string, error) {
	gi := filepath.Join(d.cfg.SysRoot, fmt.Sprintf("proc/driver/nvidia/capabilities/gpu%d/mig/gi%d", i.Minor, i.gi))
	var files []string
	for _, access := range []string{filepath.Join(gi, "access"), filepath.Join(gi, fmt.Sprintf("ci%d/access", i.ci))} {
		text, err := os.ReadFile(access)
		if err != nil {
			return nil, fmt.Errorf("nvml: access to %s: %w", i.UUID, err)
		}
		minor := NoMinor
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); name == "DeviceFileMinor" {
				minor, err = strconv.Atoi(strings.TrimSpace(value))
			}
		}
		if err != nil || minor == NoMinor {
			return nil, fmt.Errorf("nvml: %s names no device file", access)
		}
		files = append(files, fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor))
	}
	return files, nil
}
