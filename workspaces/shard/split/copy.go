package split

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weir/models"
)

// pieceBytes is how many bytes are in memory at once. What is read is written and hashed
// while it is in the processor's cache.
const pieceBytes = 256 << 10

// copyTo copies size bytes to several writers, such as a file and a hash.
func copyTo(ctx context.Context, from io.Reader, size int64, to ...io.Writer) error {
	all, buffer, copied := io.MultiWriter(to...), make([]byte, pieceBytes), int64(0)
	for {
		n, err := io.ReadFull(from, buffer)
		if _, failed := all.Write(buffer[:n]); failed != nil {
			return failed
		}
		copied += int64(n)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return err
		case copied != size:
			return errChanged
		default:
			return nil
		}
	}
}

// errChanged is the error about a file that has not the bytes that it had.
var errChanged = models.Conflict("A file has changed while it was read.")

// startBytes is how many bytes are written before their way to the disk begins.
const startBytes = 16 << 20

// earlyWriter writes to a file whose bytes begin their way to the disk while others are still
// written, so that less remains for the end.
type earlyWriter struct {
	file           *os.File
	written, begun int64
}

func (w *earlyWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	if w.written += int64(n); w.written-w.begun >= startBytes {
		// Where that is not supported, everything waits for the end.
		_ = unix.SyncFileRange(int(w.file.Fd()), w.begun, w.written-w.begun, unix.SYNC_FILE_RANGE_WRITE)
		w.begun = w.written
	}
	return n, err
}
