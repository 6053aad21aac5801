package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

const (
	// ratioSlack is how many bytes of content need no archive of a size.
	ratioSlack = 8 << 20
	// directoryTail is how many entries of the directory of a zip archive can be read more
	// than once, while its beginning is searched from its end.
	directoryTail = 2048
)

// Extract creates a directory with the content of an archive. It appears when it is
// complete. Archives with links, special files or paths that lead elsewhere are refused.
func (s *Service) Extract(ctx context.Context, actor policies.Actor, project int64, to models.FilePath, format Format,
	archive io.Reader) (Entry, error) {
	v, target, err := s.viewAt(ctx, actor, project, to, (*view).requireChange)
	if err != nil {
		return Entry{}, err
	}
	return v.build(ctx, "extract", target, func(o *operation, into *beneath.Dir) error {
		x := &extraction{operation: o, ctx: ctx, into: into, limits: s.Archive}
		return archiveError(x.read(format, archive))
	})
}

// archiveError is an error of the archive for users.
func archiveError(err error) error {
	malformed := []error{zip.ErrFormat, zip.ErrAlgorithm, zip.ErrChecksum, tar.ErrHeader, gzip.ErrHeader, gzip.ErrChecksum,
		io.ErrUnexpectedEOF, io.EOF}
	if slices.ContainsFunc(malformed, func(m error) bool { return errors.Is(err, m) }) || errors.As(err, new(flate.CorruptInputError)) {
		return models.Invalid("body", "is not a complete archive of this format")
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTDIR) {
		return models.Invalid("body", "is an archive with a path that is there twice")
	}
	return err
}

type extraction struct {
	*operation
	ctx     context.Context
	into    *beneath.Dir
	limits  ArchiveLimits
	entries int
	content int64
	size    func() int64 // of the archive so far
}

func (x *extraction) read(format Format, archive io.Reader) error {
	if format == Zip {
		return x.readZip(archive)
	}
	counted := &countingReader{Reader: archive}
	x.size = func() int64 { return counted.n }
	archive = counted
	if format == TarGz {
		unpacked, err := gzip.NewReader(archive)
		if err != nil {
			return err
		}
		archive = unpacked
	}
	content := &zerosReader{Reader: archive}
	t := tar.NewReader(content)
	for {
		content.zeros = 0
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return content.end()
		}
		if err != nil {
			return malformed(err)
		}
		mode := fs.ModeIrregular
		switch h.Typeflag {
		case tar.TypeReg:
			mode = 0
		case tar.TypeDir:
			mode = fs.ModeDir
		case tar.TypeXGlobalHeader:
			continue
		}
		if err := x.add(h.Name, mode, t); err != nil {
			return err
		}
	}
}

// malformed marks the errors of package tar that have no value of their own.
func malformed(err error) error {
	if strings.HasPrefix(err.Error(), "archive/tar") {
		return errors.Join(tar.ErrHeader, err)
	}
	return err
}

// zerosReader counts the zeros with which what was read so far ends.
type zerosReader struct {
	io.Reader
	zeros int64
}

func (r *zerosReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	rest := bytes.TrimRight(b[:n], "\x00")
	if len(rest) > 0 {
		r.zeros = 0
	}
	r.zeros += int64(n - len(rest))
	return n, err
}

const (
	tarBlock = 512 // bytes; an archive ends with blocks of zeros
	// maxTrailing is how much may follow the end of a tar archive, which programs fill up to a record.
	maxTrailing = 16 << 20
)

// end checks that a tar archive has its end, and reads what follows it: a checksum of the compression is
// after that.
func (r *zerosReader) end() error {
	if r.zeros < tarBlock {
		return io.ErrUnexpectedEOF
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, maxTrailing+1))
	switch {
	case errors.Is(err, gzip.ErrHeader): // something follows the stream, whose checksum was right
		return nil
	case err == nil && n > maxTrailing:
		return tar.ErrHeader
	}
	return err
}

type countingReader struct {
	io.Reader
	n int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n += int64(n)
	return n, err
}

// readZip stores the archive first: its directory is at its end.
func (x *extraction) readZip(archive io.Reader) error {
	f, err := x.into.Create("archive")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := x.into.Remove("archive"); err != nil { // its space is freed when it is closed
		return err
	}
	size, err := io.Copy(&earlyWriter{file: f}, io.TeeReader(archive, accounter{x.operation, x.ctx}))
	if err != nil {
		return err
	}
	x.operation.bytes -= size
	x.size = func() int64 { return size }
	bounded := &boundedReader{f, int64(x.limits.Entries)*directoryBytes + 1<<20, x.limits.Entries + directoryTail, false}
	z, err := zip.NewReader(bounded, size)
	if err != nil {
		return err
	}
	bounded.ended = true
	for _, e := range z.File {
		if err := x.addZipped(e); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) addZipped(e *zip.File) error {
	mode := e.Mode()
	if strings.HasSuffix(e.Name, "/") {
		mode |= fs.ModeDir
	}
	content, err := e.Open()
	if err != nil {
		return err
	}
	return errors.Join(x.add(e.Name, mode, content), content.Close())
}

// boundedReader bounds how much of a zip archive is read as its directory, which is kept
// in memory.
type boundedReader struct {
	*os.File
	bytes   int64 // that can still be read
	entries int   // that can still be read
	ended   bool  // the directory has been read
}

var directoryEntry = []byte("PK\x01\x02")

func (r *boundedReader) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 { // by the directory of a malformed archive
		return 0, zip.ErrFormat
	}
	n, err := r.File.ReadAt(b, at)
	if r.ended {
		return n, err
	}
	r.bytes -= int64(n)
	r.entries -= bytes.Count(b[:n], directoryEntry)
	if r.bytes < 0 || r.entries < 0 {
		return 0, tooLarge()
	}
	return n, err
}

func tooLarge() error {
	return models.Invalid("body", "is an archive with too many or too large files, or is compressed too much")
}

// add extracts one entry.
func (x *extraction) add(name string, mode fs.FileMode, content io.Reader) error {
	if x.entries++; x.entries > x.limits.Entries {
		return tooLarge()
	}
	path := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if path == "" || path == "." {
		return nil
	}
	if clean, ok := rules.Clean("/" + path); !ok || clean != "/"+path {
		return models.Invalid("body", "is an archive with the path %q, which leads elsewhere", models.VisibleName(name))
	}
	switch mode.Type() {
	case fs.ModeDir:
		return x.inDir(path, func(*beneath.Dir) error { return nil })
	case 0:
		dir, base := rules.Split("/" + path)
		return x.inDir(strings.TrimPrefix(dir, "/"), func(d *beneath.Dir) error {
			return create(d, base, func(f *os.File) error {
				_, err := io.CopyBuffer(&earlyWriter{file: f}, io.TeeReader(content, x), make([]byte, 128<<10))
				return err
			})
		})
	default:
		return models.Invalid("body", "is an archive with %q, which is a link or a special file", models.VisibleName(name))
	}
}

// Write counts extracted bytes before they are written.
func (x *extraction) Write(b []byte) (int, error) {
	x.content += int64(len(b))
	if x.content > x.limits.Bytes || x.content > x.limits.Ratio*x.size()+ratioSlack {
		return 0, tooLarge()
	}
	return len(b), x.account(x.ctx, int64(len(b)))
}

// inDir calls fn with a directory below the extracted one, which is created if needed.
func (x *extraction) inDir(path string, fn func(*beneath.Dir) error) error {
	dir, opened := x.into, []*beneath.Dir{}
	defer func() {
		for _, d := range opened {
			d.Close()
		}
	}()
	if path != "" {
		for name := range strings.SplitSeq(path, "/") {
			next, err := dir.Dir(name)
			if errors.Is(err, fs.ErrNotExist) {
				next, err = dir.Mkdir(name)
			}
			if err != nil {
				return err
			}
			dir, opened = next, append(opened, next)
		}
	}
	return fn(dir)
}
