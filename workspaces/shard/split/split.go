package split

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"

	"weir/models"
	"weir/workspaces/shard"
)

// ManifestName is the name of the manifest.
const ManifestName = "parts.json"

// manifestVersion is the form of manifests that this package writes and reads.
const manifestVersion = 1

// Manifest is what is written of a model.
type Manifest struct {
	Version int                 `json:"version"`
	Split   models.ModelSplit   `json:"split"`
	Combine models.ModelCombine `json:"combine"`
	Parts   []Part              `json:"parts"` // in the order in which data passes them
	Files   []Source            `json:"files"` // of the model
	Config  map[string][]byte   `json:"config"`
}

// Part is a file with tensors of a part.
type Part struct {
	File    string `json:"file"`
	Size    int64  `json:"size"`
	Device  string `json:"device"`
	First   string `json:"first"`
	Last    string `json:"last"`
	Written bool   `json:"-"` // this time
}

// Source is a file of the model: its header, as it is, and its size.
type Source struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Header []byte `json:"header"`
}

// configNames are the small files of a model that the manifest has.
var configNames = []string{"config.json", "model.safetensors.index.json"}

// Split writes the parts of a plan for the model in a folder to another folder. Of several
// writers to a folder one writes at a time, and the others find what it has written. The error
// is a conflict if a file of the model has changed meanwhile.
func Split(ctx context.Context, from fs.FS, to *os.Root, m shard.Model, plan models.ModelPlan) (Manifest, error) {
	manifest := Manifest{Version: manifestVersion, Split: plan.Split, Combine: plan.Combine, Config: map[string][]byte{}}
	parts, err := m.Cut(plan)
	if err != nil {
		return manifest, err
	}
	sources, err := openAll(from, m.Files, &manifest)
	defer closeAll(sources)
	if err != nil {
		return manifest, err
	}
	locked, err := lock(ctx, to)
	if err != nil {
		return manifest, err
	}
	defer locked.Close()
	sizes, err := sizesIn(to)
	if err != nil {
		return manifest, err
	}
	for i, tensors := range parts {
		p := plan.Parts[i]
		part := Part{Device: p.Device.Name, First: p.First, Last: p.Last}
		if err := writePart(ctx, to, sources, tensors, m.Files[0].Metadata, sizes, &part); err != nil {
			return manifest, err
		}
		manifest.Parts = append(manifest.Parts, part)
	}
	for _, name := range configNames {
		content, err := fs.ReadFile(from, name)
		if err == nil {
			manifest.Config[name] = content
		} else if !errors.Is(err, fs.ErrNotExist) {
			return manifest, err
		}
	}
	return manifest, manifest.write(to)
}

// source is an open file.
type source interface {
	io.ReaderAt
	io.Closer
}

// openAll opens the files of a model and keeps their headers.
func openAll(folder fs.FS, files []shard.File, manifest *Manifest) (list []source, err error) {
	for _, f := range files {
		s, err := shard.Open(folder, f.Name)
		if err != nil {
			return list, err
		}
		list = append(list, s)
		header, err := shard.ReadHeader(f.Name, s, f.Size)
		if err != nil {
			return list, err
		}
		manifest.Files = append(manifest.Files, Source{f.Name, f.Size, header})
	}
	return list, nil
}

func closeAll(list []source) {
	for _, s := range list {
		_ = s.Close() // was only read
	}
}

// joined is a header with the bytes of tensors behind it, and how many bytes that is.
func joined(header []byte, sources []source, tensors []shard.Placed) (io.Reader, int64) {
	readers, size := []io.Reader{bytes.NewReader(header)}, int64(len(header))
	for _, r := range shard.Ranges(tensors) {
		readers, size = append(readers, readRange(sources[r.File], r)), size+r.Bytes()
	}
	return io.MultiReader(readers...), size
}

// writePart writes a part, unless it is there. If a part of its size was there before, its content
// is read once to know its name before anything is written.
func writePart(ctx context.Context, to *os.Root, sources []source, tensors []shard.Placed, metadata map[string]string,
	before map[int64]bool, part *Part) error {
	header, err := shard.AppendHeader(nil, tensors, metadata)
	if err != nil {
		return err
	}
	reader, size := joined(header, sources, tensors)
	part.Size = size
	hash := sha256.New()
	if before[size] {
		if err := copyTo(ctx, reader, size, hash); err != nil {
			return err
		}
		part.File = partName(hash)
		if info, err := to.Stat(part.File); err == nil && info.Size() == size {
			return nil
		}
		reader, _ = joined(header, sources, tensors)
		hash.Reset()
	}
	part.Written = true
	return writeFile(to, func(f *os.File) error { return copyTo(ctx, reader, size, &earlyWriter{file: f}, hash) }, func() string {
		part.File = partName(hash)
		return part.File
	})
}

// partName is the name of a part whose content has a hash.
func partName(h hash.Hash) string { return "part-" + hex.EncodeToString(h.Sum(nil)) + ".safetensors" }

// sizesIn are the sizes of the parts in a folder.
func sizesIn(folder *os.Root) (map[int64]bool, error) {
	list, err := fs.Glob(folder.FS(), "part-*.safetensors")
	sizes := map[int64]bool{}
	for _, name := range list {
		if info, err := folder.Stat(name); err == nil {
			sizes[info.Size()] = true
		}
	}
	return sizes, err
}

// writeFile writes a file that gets its name when it is on the disk.
func writeFile(to *os.Root, write func(*os.File) error, name func() string) error {
	unfinished := unfinished + "-" + rand.Text()
	f, err := to.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, to.Remove(unfinished))
	}
	if err := to.Rename(unfinished, name()); err != nil {
		return errors.Join(err, to.Remove(unfinished))
	}
	return nil
}

// write writes the manifest.
func (m Manifest) write(to *os.Root) error {
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	err = writeFile(to, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	}, func() string { return ManifestName })
	if err != nil {
		return err
	}
	dir, err := to.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
