package split

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"weir/models"
	"weir/workspaces/shard"
)

// maxManifest is the most bytes of a manifest: headers and the index are in base64.
const maxManifest = 300 << 20

// ReadManifest reads the manifest of a folder with parts.
func ReadManifest(folder fs.FS) (m Manifest, err error) {
	info, err := fs.Stat(folder, ManifestName)
	if err != nil {
		return m, err
	}
	if info.Size() > maxManifest {
		return m, fmt.Errorf("%s has more than %d bytes", ManifestName, maxManifest)
	}
	text, err := fs.ReadFile(folder, ManifestName)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", ManifestName, err)
	}
	if m.Version != manifestVersion {
		return m, fmt.Errorf("%s has version %d, and not %d", ManifestName, m.Version, manifestVersion)
	}
	for name := range m.Config {
		if !slices.Contains(configNames, name) {
			return m, fmt.Errorf("%s has a file %q", ManifestName, name)
		}
	}
	return m, nil
}

// Merge writes the files of the model whose parts are in a folder, with the same bytes that
// they had. It overwrites files of the same names.
func Merge(ctx context.Context, from fs.FS, to *os.Root) (Manifest, error) {
	m, err := ReadManifest(from)
	if err != nil {
		return m, err
	}
	at := map[string][]origin{}
	var parts []source
	defer func() { closeAll(parts) }()
	for _, p := range m.Parts {
		s, file, err := openPart(ctx, from, p)
		if err != nil {
			return m, err
		}
		for _, t := range file.Tensors {
			at[t.Name] = append(at[t.Name], origin{s, t})
		}
		parts = append(parts, s)
	}
	locked, err := lock(ctx, to)
	if err != nil {
		return m, err
	}
	defer locked.Close()
	for _, f := range m.Files {
		if err := f.merge(ctx, to, at); err != nil {
			return m, err
		}
	}
	for name, content := range m.Config {
		err := writeFile(to, func(f *os.File) error {
			_, err := f.Write(content)
			return err
		}, func() string { return name })
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// origin is a tensor of a part, or the rows or columns of one.
type origin struct {
	source
	shard.Tensor
}

// openPart opens a part whose content is that of its name.
func openPart(ctx context.Context, folder fs.FS, p Part) (s source, file shard.File, err error) {
	if s, err = shard.Open(folder, p.File); err != nil {
		return nil, file, err
	}
	hash := sha256.New()
	err = copyTo(ctx, io.NewSectionReader(s, 0, p.Size), p.Size, hash)
	if err == nil && partName(hash) != p.File {
		err = fmt.Errorf("%s is damaged: its content is not that of its name", p.File)
	}
	if err == nil {
		file, err = shard.ReadFile(p.File, s, p.Size)
	}
	if err != nil {
		_ = s.Close() // was only read
	}
	return s, file, err
}

// merge writes a file of the model.
func (f Source) merge(ctx context.Context, to *os.Root, at map[string][]origin) error {
	file, err := shard.ParseHeader(f.Name, f.Header, f.Size)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(len(f.Header)))
	readers := []io.Reader{bytes.NewReader(size), bytes.NewReader(f.Header)}
	for _, t := range file.Tensors {
		r := whole(t, at[t.Name])
		if r == nil {
			return models.Conflict("The parts have no tensor %s of %d bytes.", models.VisibleName(t.Name), t.Bytes())
		}
		readers = append(readers, r)
	}
	content := io.MultiReader(readers...)
	return writeFile(to, func(w *os.File) error {
		return copyTo(ctx, content, f.Size, &earlyWriter{file: w})
	}, func() string { return f.Name })
}

// whole reads a tensor of what the parts have of it: all of it, or its rows or its columns in
// their order. It is nil if that is something else.
func whole(t shard.Tensor, from []origin) io.Reader {
	if len(from) > 0 && from[0].Bytes() == t.Bytes() {
		return from[0].all()
	}
	var readers []io.Reader
	var widths []int64
	size, columns := int64(0), len(t.Shape) == 2
	for _, o := range from {
		if len(o.Shape) != len(t.Shape) || len(t.Shape) == 0 {
			return nil
		}
		columns = columns && o.Shape[0] == t.Shape[0] && o.Bytes()%max(t.Shape[0], 1) == 0
		readers, widths, size = append(readers, o.all()), append(widths, o.Bytes()/max(t.Shape[0], 1)), size+o.Bytes()
	}
	switch {
	case size != t.Bytes() || size == 0:
		return nil
	case columns:
		return &rows{of: readers, widths: widths, left: widths[0]}
	default:
		return io.MultiReader(readers...)
	}
}

func (o origin) all() io.Reader { return io.NewSectionReader(o.source, o.From, o.Bytes()) }
