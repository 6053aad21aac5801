package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// PauseName is the image of containerd's sandbox containers.
const PauseName = "weir.local/pause:1"

// Pause compiles the pause program and returns its image in the directory
// cache. It must be called inside the module.
func Pause(ctx context.Context, cache string) (Image, error) {
	im := Image{PauseName, filepath.Join(cache, "pause-1.tar")}
	if _, err := os.Stat(im.Path); err == nil {
		return im, nil
	}
	dir, err := os.MkdirTemp("", "pause-")
	if err != nil {
		return Image{}, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "pause")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "weir/tools/cluster/image/pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return Image{}, fmt.Errorf("building the pause program: %w\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return Image{}, err
	}
	return im, im.write(settings{User: "65535:65535", Entrypoint: []string{"/pause"}}, func(w *tar.Writer) error {
		return archive{w}.file("pause", 0o755, int64(len(content)), bytes.NewReader(content))
	})
}
