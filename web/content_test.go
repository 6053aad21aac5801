package web

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/a-h/templ"
)

// What contents weigh is what they hold: a cache of them is bounded by it.
func TestContentSize(t *testing.T) {
	const pieces, count = 290, 500 // 30 KB each, for which a builder has 40
	piece := strings.Repeat("x", 1<<10/10)
	page := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		for range pieces {
			if _, err := io.WriteString(w, piece); err != nil {
				return err
			}
		}
		return nil
	})
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, list, size := held(), make([]Content, 0, count), 0
	for range count {
		c, err := ContentOf(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		list, size = append(list, c), size+c.Size()
	}
	grown := int(held() - before)
	runtime.KeepAlive(list)
	if grown > size+size/5 {
		t.Errorf("contents that weigh %d bytes hold %d", size, grown)
	}
}
