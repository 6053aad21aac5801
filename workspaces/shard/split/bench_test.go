package split

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/models"
)

// BenchmarkSplit compares a split with a copy of the same files, each to the disk. x-copy is
// the rate of the split as a multiple of that of the copy.
func BenchmarkSplit(b *testing.B) {
	dir := writeModel(b, 32<<10)
	m, plan := planned(b, dir, models.SplitLayers, 0.9)
	m.Facts.Tied = false // or the embeddings would be written twice
	b.SetBytes(m.Facts.Bytes)
	for _, f := range m.Files { // or what is measured first waits until the model is on the disk
		if err := copyFile(filepath.Join(dir, f.Name), filepath.Join(b.TempDir(), f.Name)); err != nil {
			b.Fatal(err)
		}
		file, err := os.Open(filepath.Join(dir, f.Name))
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			b.Fatal(err)
		}
	}
	var splitting, copying time.Duration
	for b.Loop() {
		out := b.TempDir()
		start := time.Now()
		if _, err := Split(b.Context(), os.DirFS(dir), root(b, out), m, plan); err != nil {
			b.Fatal(err)
		}
		splitting += time.Since(start)
		if err := os.RemoveAll(out); err != nil {
			b.Fatal(err)
		}
		out, start = b.TempDir(), time.Now()
		for _, f := range m.Files {
			if err := copyFile(filepath.Join(dir, f.Name), filepath.Join(out, f.Name)); err != nil {
				b.Fatal(err)
			}
		}
		copying += time.Since(start)
		if err := os.RemoveAll(out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(copying.Seconds()/splitting.Seconds(), "x-copy")
}

// copyFile copies a file as the standard library does, and writes it to the disk.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
