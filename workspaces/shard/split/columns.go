package split

import (
	"errors"
	"io"

	"weir/workspaces/shard"
)

// readRange reads bytes of a file.
func readRange(from io.ReaderAt, r shard.Range) io.Reader {
	if r.Step == 0 {
		return io.NewSectionReader(from, r.From, r.Until-r.From)
	}
	return &columns{from: from, Range: r, at: r.From}
}

// columns reads some columns of each row of a matrix.
type columns struct {
	from io.ReaderAt
	shard.Range
	at int64 // of the next byte
}

func (c *columns) Read(b []byte) (n int, err error) {
	for n < len(b) && c.at < c.Until {
		left := c.Width - (c.at-c.From)%c.Step // in this row
		k, err := c.from.ReadAt(b[n:n+int(min(int64(len(b)-n), left))], c.at)
		n, c.at = n+k, c.at+int64(k)
		if int64(k) == left {
			c.at += c.Step - c.Width
		} else if err != nil {
			return n, err
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// rows reads a matrix whose columns are in several readers, with so many bytes of each row.
type rows struct {
	of     []io.Reader
	widths []int64
	turn   int   // which is read
	left   int64 // of its bytes in this row
}

func (r *rows) Read(b []byte) (n int, err error) {
	for n < len(b) {
		for r.left == 0 {
			r.turn = (r.turn + 1) % len(r.of)
			r.left = r.widths[r.turn]
		}
		k, err := r.of[r.turn].Read(b[n : n+int(min(int64(len(b)-n), r.left))])
		n, r.left = n+k, r.left-int64(k)
		if errors.Is(err, io.EOF) && n > 0 {
			return n, nil // the end is there next time, too
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
