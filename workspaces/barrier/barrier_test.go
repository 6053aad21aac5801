package barrier

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/models"
)

// twoThreads is a kernel of two warps, each with its own code; | is a strong barrier.
func twoThreads(first, second string) string {
	a, b := strings.Split(first, "|"), strings.Split(second, "|")
	var out strings.Builder
	out.WriteString(".version 7.8\n.target sm_80\n.address_size 64\n\n.visible .entry pair()\n.reqntid 64\n{\n\t.reg .pred %p<2>;\n\t.reg .u32 %r<2>;\n" +
		"\tmov.u32 %r1, %tid.x;\n\tsetp.ge.u32 %p1, %r1, 32;\n")
	for i := range a {
		if i > 0 {
			out.WriteString("\tbar.sync 99;\n")
		}
		code := func(list string) string {
			var lines strings.Builder
			for _, op := range strings.Fields(list) {
				word := map[byte]string{'a': "arrive", 's': "sync"}[op[0]]
				fmt.Fprintf(&lines, "\tbarrier.%s %s, 64;\n", word, op[1:])
			}
			return lines.String()
		}
		fmt.Fprintf(&out, "\t@%%p1 bra SECOND%d;\n%s\tbra.uni JOIN%d;\nSECOND%d:\n%sJOIN%d:\n", i, code(a[i]), i, i, code(b[i]), i)
	}
	out.WriteString("\tret;\n}\n")
	return out.String()
}

// five is the kernel of two threads and five barriers: the first thread produces, the
// second consumes.
func five(middle string) string {
	return twoThreads("a100 a101 a102 "+middle+" a103 a104", "s100 s101 s102 "+middle+" s103 s104")
}

func mustAllocate(t testing.TB, source string, o Options) models.BarrierAllocation {
	t.Helper()
	a, err := Allocate(t.Context(), source, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return a
}

// numbersOf are the physical barriers by segment and name.
func numbersOf(k models.BarrierKernel) (list []map[string]int) {
	for _, s := range k.Segments {
		m := map[string]int{}
		for _, b := range s.Barriers {
			m[b.Name] = b.Physical
		}
		list = append(list, m)
	}
	return list
}

func TestFiveBarriersOfTwoThreads(t *testing.T) {
	for _, c := range []struct {
		name, source string
		segments     []int // physical barriers by segment
		used         int
	}{
		// The producer never learns how far the consumer is: all five overlap.
		{"one way", five(""), []int{5}, 5},
		// The strong barrier is not over while the first three are used.
		{"one way, strong in the middle", five("|"), []int{4, 2}, 4},
		// The consumer answers, and with each answer all earlier barriers are over.
		{"both ways", twoThreads("a100 s101 a102 s103 a104", "s100 a101 s102 a103 s104"), []int{2}, 2},
		{"both ways, strong in the middle", twoThreads("a100 s101 a102 | s103 a104", "s100 a101 s102 | a103 s104"), []int{2, 2}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := mustAllocate(t, c.source, Options{}).Report.Kernels[0]
			var segments []int
			for _, s := range k.Segments {
				segments = append(segments, s.Used)
				if s.Method != string(Sweep) || len(s.Overlap) != s.Used {
					t.Errorf("segment %d: %s with %d barriers, of which %v overlap", s.Number, s.Method, s.Used, s.Overlap)
				}
			}
			if !slices.Equal(segments, c.segments) || k.Used != c.used {
				t.Errorf("segments use %v, the kernel %d; want %v and %d: %v", segments, k.Used, c.segments, c.used, numbersOf(k))
			}
		})
	}
}

// A register that is declared by its own name is as well known as one that is declared with
// others.
func TestDeclaredRegisters(t *testing.T) {
	answers := twoThreads("a100 s101 a102 s103", "s100 a101 s102 a103")
	source := strings.NewReplacer(".pred %p<2>;", ".pred %p1;", ".u32 %r<2>;", ".u32 %r1;").Replace(answers)
	if source == answers {
		t.Fatal("nothing is declared by its own name")
	}
	if k := mustAllocate(t, source, Options{}).Report.Kernels[0]; k.Used != 2 {
		t.Errorf("%d barriers are used: %v", k.Used, numbersOf(k))
	}
}

// What is not a barrier passes through byte for byte, also what looks like one.
func TestEverythingElsePassesThrough(t *testing.T) {
	source := "// bar.sync 77;\r\n#define X bar.sync 78\n /* */ # X\n.version 7.8 .target sm_80\n.global .b32 bar[2] = {1,2};\n" +
		".extern .func (.param .b32 r) vprintf (.param .b64 a);\n.weir.bar full, empty; // two\n" +
		".visible .entry k(.param .u64 p) .maxntid 128, 1, 1\n{ .reg .pred %p; .reg .b32 bar_sync;\n" +
		"\t.loc 1 2 3; .pragma \"bar.sync 79;\";\nL: /* bar.sync 80; */ bar.warp.sync 0xffffffff;\n\tbarrier.cluster.arrive;\n\tmbarrier.init.shared::cta.b64 [bar], 1;\n" +
		"\tbarrier.cta.sync.aligned\tfull ,64; bar.cta.arrive empty,64U;\n\t@!%p bar.red.popc.u32 %r1, 0x0, !%p;\n\tbar.sync 300;\n" +
		"\t{ mov.b64 {%r1,%r2}, %rd1; }\n\t@%p bra.uni L;\n\tret;\n}\n.section .debug_str { .b8 98,97,114 }\n"
	want := strings.NewReplacer(".weir.bar full, empty;", "", "\tfull ,64", "\t1 ,64", "arrive empty,", "arrive 2,", "300", "3").Replace(source)
	if got := mustAllocate(t, source, Options{}).PTX; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	without := "anything { at all; } \x00\xff \"string\" \n"
	if got := mustAllocate(t, without, Options{}).PTX; got != without {
		t.Errorf("got %q", got)
	}
}

func TestRefusals(t *testing.T) {
	body := func(code string) string { return ".entry k() .reqntid 64 {\n" + code + "\nret; }" }
	for name, c := range map[string]struct{ source, want string }{
		"register":       {body("bar.sync %r1;"), "line 2: the barrier is in register %r1"},
		"expression":     {body("bar.sync 1+1;"), "line 2: the barrier must be a number or a name"},
		"no count":       {body("\nbar.arrive 1;"), "line 3: an arrival needs the number of threads"},
		"odd count":      {body("bar.sync 1, 33;"), "line 2: the number of threads is 33; it must be a multiple of 32 up to 1024"},
		"other counts":   {body("bar.sync 1, 32;\nbar.sync 1, 64;"), "line 3: barrier 1 has other numbers of threads here and in line 2"},
		"too few":        {body("bar.sync 1, 96;"), "line 2: barrier 1 waits for 96 threads, but only 64 can reach it"},
		"form":           {body("bar.wait 1;"), "line 2: bar.wait is no form of a barrier"},
		"label":          {body("bar.sync 1; bra L;"), "line 2: label L is not defined"},
		"label twice":    {body("L: L: ret;"), "line 2: label L is defined twice"},
		"nesting":        {body(strings.Repeat("{", maxNesting+1)), "line 2: more than 100 blocks are nested"},
		"comment":        {"\n/* ", "line 2: the comment has no end"},
		"string":         {"\n\n\"", "line 3: the string has no end"},
		"end":            {".entry k() {", "line 1: the function has no end"},
		"semicolon":      {".entry k() {\nret", "line 2: the instruction has no semicolon"},
		"declared twice": {".weir.bar a;\n.weir.bar a;", "line 2: barrier a is declared twice"},
		"declared badly": {".weir.bar 1;", "line 1: .weir.bar needs the names"},
		"function":       {".func f() {\nbar.sync 1; }", "line 2: function f uses a barrier"},
		"block":          {".entry k() .reqntid 1024, 2 { }", "line 1: a thread block has at most 1024 threads"},
		"arrivals left": {twoThreads("a100 s101 a100 | a200 a201 a202", "s100 a101 | s200 s201 s202"),
			"segment 2 of pair (lines 23 to 30) needs 3 barriers, 1 more than there are without the 1 at which arrivals of earlier segments remain"},
		"too many": {five(""), "segment 1 of pair (lines 13 to 24) needs 5 barriers, 2 more than there are; these overlap: 100, 101, 102, 103, 104"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Allocate(t.Context(), c.source, Options{Physical: 3})
			e := (*models.Error)(nil)
			if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Name != "ptx" || !strings.Contains(e.Fields[0].Reason.String(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	for field, o := range map[string]Options{"physical": {Physical: 17}, "threads": {Threads: 1025}} {
		if _, err := Allocate(t.Context(), "", o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

// The barriers of a loop live through it; what was over before it is free in it.
func TestLoops(t *testing.T) {
	source := `.entry k() .reqntid 64 {
	setp.lt.u32 %p1, %tid.x, 32;
	bar.sync 20, 64;
	@%p1 bra PRODUCER;
CONSUMER:
	bar.sync 21, 64;
	bar.sync 22, 64;
	@%p2 bra CONSUMER;
	bra JOIN;
PRODUCER:
	bar.arrive 21, 64;
	bar.sync 22, 64;
	@%p2 bra PRODUCER;
JOIN:
	bar.sync 23, 64;
	ret; }`
	segments := mustAllocate(t, source, Options{}).Report.Kernels[0].Segments
	// 20 and 23 are for all threads: they cut the kernel.
	if len(segments) != 2 || segments[0].Used != 1 || segments[1].Used != 2 {
		t.Fatalf("got %+v", segments)
	}
	for _, b := range segments[1].Barriers {
		if wantsLoop := b.Name == "21"; b.Assumed != wantsLoop || b.Unknown || b.Pending {
			t.Errorf("got %+v", b)
		}
		if b.Name == "23" && b.Reuses == "" {
			t.Errorf("the barriers of the loop are over at 23: %+v", b)
		}
	}
}

// An arrival before a strong barrier that belongs to a wait after it holds its barrier
// through both segments.
func TestArrivalAcrossStrongBarrier(t *testing.T) {
	k := mustAllocate(t, twoThreads("a100 a101 | s102", "s101 | s100 a102"), Options{}).Report.Kernels[0]
	if len(k.Segments) != 1 {
		t.Fatalf("the kernel is cut although 100 is not complete: %+v", k.Segments)
	}
	numbers := numbersOf(k)[0]
	if numbers["100"] == numbers["99"] || numbers["100"] == numbers["101"] || numbers["100"] == numbers["102"] {
		t.Errorf("100 shares its barrier: %v", numbers)
	}
}

// ptxas accepts what comes out, where there is one.
func TestPtxasAcceptsTheOutput(t *testing.T) {
	path, err := exec.LookPath("ptxas")
	if err != nil {
		t.Log("ptxas is not in PATH: that it accepts the rewritten kernels is not tested here")
		return
	}
	for i, source := range []string{five(""), five("|")} {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.ptx", i))
		if err := os.WriteFile(file, []byte(mustAllocate(t, source, Options{}).PTX), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "-arch=sm_80", "-o", os.DevNull, file).CombinedOutput(); err != nil {
			t.Errorf("ptxas: %v\n%s", err, out)
		}
	}
}

// A line of .loc has no semicolon: what follows it counts. Labels belong to their block, as those of inline PTX.
func TestLinesAndBlocks(t *testing.T) {
	const wait = "{ .reg .pred %w;\nWAIT:\n\tmbarrier.try_wait.shared.b64 %w, [%rd1], %r1;\n\t@%w bra DONE;\n\tbra WAIT;\nDONE:\n}\n"
	lines := "\t.loc 1 5 3\n\tbar.sync 0;\n\t.loc 1 6 3, function_name info, inlined_at 1 3 4\n\tbar.sync full, 64;\n\t.loc 1 7 1\n$L1:\n\t.loc 1 8 1\n\t@%p bra $L1;\n"
	source := func(lines string) string {
		return ".version 7.8\n.target sm_80\n.visible .entry k() .maxntid 128, 1, 1\n{\n.weir.bar full;\n.reg .pred %p;\n\tbar.arrive full, 64;\n" +
			lines + wait + wait + "\tret;\n}\n"
	}
	got := mustAllocate(t, source(lines), Options{}).PTX
	plain := regexp.MustCompile(`(?m)^\t\.loc .*\n`).ReplaceAllString(got, "")
	if want := mustAllocate(t, source(regexp.MustCompile(`(?m)^\t\.loc .*\n`).ReplaceAllString(lines, "")), Options{}).PTX; plain != want {
		t.Errorf("with .loc\n%s\nwithout\n%s", plain, want)
	}
	if strings.Contains(got, "full") || strings.Count(got, ".loc") != 4 {
		t.Errorf("got\n%s", got)
	}
	_, err := Allocate(t.Context(), source("A:\n{ B: bra A; }\nbra B;\n"), Options{})
	if err == nil || !strings.Contains(err.Error(), "label B is not defined") {
		t.Errorf("a label of an inner block is known outside: %v", err)
	}
}
