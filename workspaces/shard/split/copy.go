package split

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The bytes that are read and not yet written are at most pieces of pieceBytes.
const (
	pieceBytes = 512 << 10 // so that what is read is hashed and written while it is in the cache
	pieces     = 8
)

// piece is bytes that were read.
type piece struct {
	buffer []byte
	err    error
}

// copyTo copies size bytes to several writers at the same time, such as a file and a hash, and
// reads the next pieces meanwhile.
func copyTo(ctx context.Context, from io.Reader, size int64, to ...io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	free, filled := make(chan []byte, pieces), make(chan piece, pieces+1)
	for range pieces {
		free <- make([]byte, min(pieceBytes, size+1))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		readPieces(ctx, from, free, filled)
	}()
	defer func() { cancel(); <-done }()
	copied := int64(0)
	for p := range filled {
		if p.err != nil {
			return p.err
		}
		if err := writeAll(to, p.buffer); err != nil {
			return err
		}
		copied += int64(len(p.buffer))
		free <- p.buffer[:cap(p.buffer)]
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if copied != size {
		return errChanged
	}
	return nil
}

// readPieces reads until the end, an error, or that the context is canceled.
func readPieces(ctx context.Context, from io.Reader, free <-chan []byte, filled chan<- piece) {
	defer close(filled)
	for {
		select {
		case buffer := <-free:
			n, err := io.ReadFull(from, buffer)
			if n > 0 {
				filled <- piece{buffer: buffer[:n]}
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return
			}
			if err != nil {
				filled <- piece{err: err}
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// writeAll writes to all writers at the same time.
func writeAll(to []io.Writer, bytes []byte) error {
	written := make(chan error)
	for _, w := range to {
		go func() {
			_, err := w.Write(bytes)
			written <- err
		}()
	}
	var err error
	for range to {
		err = errors.Join(err, <-written)
	}
	return err
}

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
