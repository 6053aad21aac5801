package serving

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"testing"
)

// testPart answers frames in a test: a header and values for the values of a payload.
type testPart func(h header, values []float32) (header, []float32)

// connected are connections to parts of a test.
func connected(t *testing.T, parts ...testPart) (list []*conn) {
	t.Helper()
	for _, part := range parts {
		mine, theirs := net.Pipe()
		t.Cleanup(func() { _ = mine.Close() })
		go func() {
			defer theirs.Close()
			for {
				var sizes [8]byte
				if _, err := io.ReadFull(theirs, sizes[:]); err != nil {
					return
				}
				head := binary.LittleEndian.Uint32(sizes[:4])
				frame := make([]byte, head+binary.LittleEndian.Uint32(sizes[4:]))
				if _, err := io.ReadFull(theirs, frame); err != nil {
					return
				}
				var h header
				_ = json.Unmarshal(frame[:head], &h) // of the other side
				h, values := part(h, floats(frame[head:]))
				if (&conn{Conn: theirs}).send(h, bytesOf(values)) != nil {
					return
				}
			}
		}()
		list = append(list, &conn{Conn: mine})
	}
	return list
}

// summand is a part with n sums, for which it returns a value each, and then logits.
func summand(n int, value float32, logits ...float32) testPart {
	seen := []float32{}
	return func(h header, values []float32) (header, []float32) {
		if h.Op == "forward" {
			seen = nil
		} else {
			seen = append(seen, values...)
		}
		if len(seen) < n*h.Tokens {
			return header{Tokens: h.Tokens, At: h.At, Add: true}, slices.Repeat([]float32{value}, h.Tokens)
		}
		for _, x := range seen {
			if x != 11 {
				return header{}, nil
			}
		}
		return header{Tokens: h.Tokens, At: h.At + h.Tokens}, logits
	}
}

// What parts with some heads return is added up and sent to all of them, and their logits are
// put together.
func TestAddUp(t *testing.T) {
	m := Model{Hidden: 1, Vocabulary: 5, Add: true}
	parts := connected(t, summand(3, 1, 7, 8), summand(3, 10, 9, 10, 11))
	for at, tokens := range [][]int32{{4}, {1, 2, 3}} {
		logits, err := m.compute(parts, tokens, at)
		if err != nil || !slices.Equal(logits, []float32{7, 8, 9, 10, 11}) {
			t.Errorf("%v, %v", logits, err)
		}
	}
}

// Where one part has everything but some experts, the others have nothing to add to what is wider than
// the hidden values; but sums that nobody begins, or that are too wide, are none.
func TestAddUpBesideOthers(t *testing.T) {
	experts := func(widths ...int) testPart {
		rounds := 0
		return func(h header, _ []float32) (header, []float32) {
			if rounds++; rounds > len(widths) {
				return header{Tokens: h.Tokens, At: h.At + h.Tokens}, []float32{float32(rounds)}[:max(widths[0], 1)-1]
			}
			return header{Tokens: h.Tokens, At: h.At, Add: true}, slices.Repeat([]float32{1}, h.Tokens*widths[rounds-1])
		}
	}
	m := Model{Hidden: 2, Vocabulary: 1, Add: true, Experts: true}
	for _, c := range []struct {
		first, other []int
		ok           bool
	}{{[]int{2, 4, 1}, []int{0, 0, 1}, true}, {[]int{2, 0}, []int{0, 2}, false}, {[]int{2, 5}, []int{0, 0}, false}, {[]int{2, 4}, []int{0, 2}, false}} {
		logits, err := m.compute(connected(t, experts(c.first...), experts(c.other...)), []int32{1, 2, 3}, 0)
		if c.ok != (err == nil) || c.ok && !slices.Equal(logits, []float32{4}) {
			t.Errorf("%v: %v, %v", c, logits, err)
		}
	}
}

// layers is a part between layers: it adds a value to each token, and the last one returns the sum
// of what it has seen of the sequence as logits.
func layers(value float32, last bool) testPart {
	sum, at := float32(0), 0
	return func(h header, values []float32) (header, []float32) {
		if h.At != at {
			return header{}, nil
		}
		at += h.Tokens
		for i := range values {
			if value == 1 { // the first part has token numbers
				values[i] = float32(int32(math.Float32bits(values[i])))
			}
			values[i] += value
			sum += values[i]
		}
		if last {
			values = []float32{sum, float32(at)}
		}
		return header{Tokens: h.Tokens, At: at}, values
	}
}

// A prompt passes all parts in chunks, in order, and the next tokens follow it.
func TestPipeline(t *testing.T) {
	m := Model{Hidden: 1, Vocabulary: 2}
	for _, n := range []int{1, 15, 16, 17, 100, 128, 1000} {
		parts, want, at := connected(t, layers(1, false), layers(10, false), layers(100, true)), float32(0), 0
		for range 3 {
			var tokens []int32
			for i := range n {
				tokens, want = append(tokens, int32(i%7)), want+float32(i%7)+111
			}
			logits, err := m.compute(parts, tokens, at)
			if at += n; err != nil || !slices.Equal(logits, []float32{want, float32(at)}) {
				t.Fatalf("%d tokens: %v, not %g, %v", n, logits, want, err)
			}
		}
	}
}

// The part that fails in the midst of a prompt is named, and nobody waits for the others.
func TestPipelineFails(t *testing.T) {
	m := Model{Hidden: 1, Vocabulary: 2}
	for failing := range 3 {
		parts := []testPart{layers(1, false), layers(10, false), layers(100, true)}
		right := parts[failing]
		parts[failing] = func(h header, values []float32) (header, []float32) {
			if h.At >= 48 {
				return header{}, nil
			}
			return right(h, values)
		}
		_, err := m.compute(connected(t, parts...), make([]int32, 128), 0)
		if failed, ok := errors.AsType[*PartError](err); !ok || failed.Part != failing || !errors.Is(err, errUnfit) {
			t.Errorf("part %d: %v", failing, err)
		}
	}
}

// A part that answers something else is named, and nothing is computed with its answer.
func TestAddUpRefuses(t *testing.T) {
	m := Model{Hidden: 1, Vocabulary: 4, Add: true}
	right := func() testPart { return summand(1, 1, 7, 8) }
	changed := func(change func(h *header, values []float32) []float32) testPart {
		part := summand(1, 10, 9, 10)
		return func(h header, values []float32) (header, []float32) {
			h, values = part(h, values)
			values = change(&h, values)
			return h, values
		}
	}
	for name, part := range map[string]testPart{
		"another position": changed(func(h *header, v []float32) []float32 { h.At++; return v }),
		"other tokens":     changed(func(h *header, v []float32) []float32 { h.Tokens++; return v }),
		"its end":          changed(func(h *header, v []float32) []float32 { h.Add = false; return v }),
		"too few values":   changed(func(_ *header, v []float32) []float32 { return v[1:] }),
		"too many values":  changed(func(_ *header, v []float32) []float32 { return append(v, 0) }),
		"no logits":        summand(1, 10),
		"other sums":       summand(2, 10, 9, 10),
	} {
		_, err := m.compute(connected(t, right(), part), []int32{3}, 0)
		if failed, ok := errors.AsType[*PartError](err); !ok || failed.Part != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	endless := func() testPart { return summand(1<<30, 5.5) }
	if _, err := m.compute(connected(t, endless(), endless()), []int32{3}, 0); !errors.Is(err, errUnfit) {
		t.Errorf("sums without end: %v", err)
	}
}
