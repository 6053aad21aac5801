package split

import (
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
	at := map[string]origin{}
	var parts []source
	defer func() { closeAll(parts) }()
	for _, p := range m.Parts {
		s, file, err := openPart(ctx, from, p)
		if err != nil {
			return m, err
		}
		for _, t := range file.Tensors {
			at[t.Name] = origin{len(parts), t}
		}
		parts = append(parts, s)
	}
	locked, err := lock(ctx, to)
	if err != nil {
		return m, err
	}
	defer locked.Close()
	for _, f := range m.Files {
		if err := f.merge(ctx, to, parts, at); err != nil {
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

// origin is where a tensor is.
type origin struct {
	part int
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
func (f Source) merge(ctx context.Context, to *os.Root, parts []source, at map[string]origin) error {
	file, err := shard.ParseHeader(f.Name, f.Header, f.Size)
	if err != nil {
		return err
	}
	var list []shard.Placed
	for _, t := range file.Tensors {
		o, known := at[t.Name]
		if !known || o.Bytes() != t.Bytes() {
			return models.Conflict("The parts have no tensor %s of %d bytes.", models.VisibleName(t.Name), t.Bytes())
		}
		list = append(list, shard.Placed{File: o.part, Tensor: o.Tensor})
	}
	header := append(binary.LittleEndian.AppendUint64(nil, uint64(len(f.Header))), f.Header...)
	reader, size := joined(header, parts, list)
	return writeFile(to, func(w *os.File) error { return copyTo(ctx, reader, size, &earlyWriter{file: w}) }, func() string { return f.Name })
}
