package barrier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Sources that are made to take long are refused or allocated, with bounded work: these would
// not end in hours if some part were quadratic in steps of their size.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	repeat := func(n int, format string) string {
		var s strings.Builder
		for i := range n {
			s.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return s.String()
	}
	kernel := func(body string) string { return ".entry k() .reqntid 1024 {\n" + body + "\nEND: ret; }" }
	for name, source := range map[string]string{
		"strong barriers":   kernel(repeat(9000, "bar.sync #;")),
		"branches over all": kernel(repeat(4000, "@%q bra END; barrier.sync #, 64;")),
		"one in a loop":     kernel("L:" + repeat(9000, "barrier.sync 1, 64;") + "@%q bra L;"),
		"nested loops":      kernel(repeat(4000, "L#:") + repeat(4000, "barrier.sync 1, 64; @%q bra L#;")),
		"irreducible":       kernel("@%q bra B; A: bar.sync 1; B: bar.sync 2; @%q bra A;"),
		"arrivals":          kernel(repeat(3000, "barrier.arrive #, 64;")),
		"tables":            kernel("t: .branchtargets " + repeat(9000, "END,") + "END;" + repeat(5000, "brx.idx %r, t;")),
		"registers":         kernel(repeat(40000, "add.u32 %r#, %r#, 1;") + "@%r1 bar.sync 1;"),
		"long chain":        kernel("mov.u32 %x0, %tid.x;" + repeat(20000, "mov.u32 %y#, %x#;") + "@%y9999 bar.sync 1;"),
		"braces":            kernel(repeat(40000, "{")),
		"number signs":      "x" + strings.Repeat("#", 8<<20),
		"labels far away": kernel(strings.Repeat("{", maxNesting) + "t: .branchtargets " + repeat(10, "F#,") + "END;" +
			repeat(18_000, "brx.idx %r, t;") + strings.Repeat("}", maxNesting) + repeat(10, "F#:")),
		"labels": kernel(repeat(40000, "L#:")),
		"chain":  chain(32, 800, true),
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Allocate(t.Context(), source, Options{})
			if err == nil && len(a.PTX) == 0 {
				t.Error("nothing came back")
			}
		})
	}
}

// What takes long ends with its context.
func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Allocate(ctx, five(""), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
