package kube

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// However often the reader of a log is interrupted, nothing of it is lost and nothing is
// twice: also with lines of one time, with a line that is longer than what is read at once,
// and with an end without a line break.
func TestInterruptedReader(t *testing.T) {
	type line struct{ at, text string }
	lines := []line{{"2026-01-02T03:04:05.1Z", "a\n"}, {"2026-01-02T03:04:05.1Z", "b\n"}, {"2026-01-02T03:04:05.1Z", "b\n"},
		{"2026-01-02T03:04:06.2Z", strings.Repeat("x", 3*logReadBlock) + "\n"}, {"2026-01-02T03:04:06.3Z", "\n"},
		{"2026-01-02T03:04:09.0Z", "c d\n"}, {"2026-01-02T03:04:09.0Z", "end"}}
	var want strings.Builder
	for _, l := range lines {
		want.WriteString(l.text)
	}
	dir := logFiles(t.TempDir())
	interrupted := errors.New("interrupted")
	c, reads := cursor{}, 0
	for done := false; !done; reads++ {
		var log strings.Builder // what the cluster returns from a second on
		for _, l := range lines {
			if second, _, err := cutTime([]byte(l.at + " ")); err != nil || second >= c.Second {
				log.WriteString(l.at + " " + l.text)
			}
		}
		saves := 0
		err := copyLines(strings.NewReader(log.String()), c, func(b []byte, offset int64, now cursor) error {
			if saves++; saves > 1 && reads < 10 {
				return interrupted
			}
			c = now
			return dir.writeAt(b, offset)
		})
		if err != nil && !errors.Is(err, interrupted) {
			t.Fatal(err)
		}
		done = err == nil
	}
	got, err := os.ReadFile(dir.segment(0))
	if err != nil || string(got) != want.String() || reads < 2 {
		t.Errorf("after %d reads %d bytes of %d, %v", reads, len(got), want.Len(), err)
	}
}

// A log since a second can begin with the rest of a long line, which is kept already.
func TestLogFromWithinALine(t *testing.T) {
	const next = "2026-01-02T11:04:05.000000000+08:00 next\n"
	since := cursor{Second: 1767323045, Offset: 100}
	for rest, fails := range map[string]bool{"": false, "of a line\n": false, strings.Repeat("x", 3*logReadBlock) + "\n": false, "\n": false,
		"failed to watch the log": true, "failed to open the log\n": true} {
		log := rest + next
		if fails {
			log = rest
		}
		var got string
		err := copyLines(strings.NewReader(log), since, func(b []byte, offset int64, _ cursor) error {
			got += string(b)
			return nil
		})
		if fails != (err != nil) || !fails && strings.TrimSpace(got) != "next" {
			t.Errorf("%.30q: %q, %v", rest, got, err)
		}
	}
}
