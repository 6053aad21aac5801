package serving

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"

	"weir/workspaces/shard"
)

var errUnfit = errors.New("the answer does not fit the request")

const (
	// microBatches is into how many chunks a prompt is divided, so that all parts compute at the
	// same time: the first ones while the last one still waits, for P-1 of microBatches+P-1 steps.
	microBatches = 8
	// minChunk is the fewest tokens of a chunk: matrices are slow on fewer.
	minChunk = 16
)

// compute has the parts compute tokens from a position on, and returns the logits of the last
// one. The error is a *PartError.
func (m Model) compute(parts []*conn, tokens []int32, at int) (logits []float32, err error) {
	most := int(shard.ChunkTokens(int64(m.Hidden)))
	if len(parts) > 1 && !m.Add {
		most = min(most, max((len(tokens)+microBatches-1)/microBatches, minChunk))
	}
	var frames []frame
	for chunk := range slices.Chunk(tokens, most) {
		frames = append(frames, forward(len(chunk), at, bytesOf(chunk)))
		at += len(chunk)
	}
	err = m.computeAll(parts, frames, func(result []float32) { logits = result })
	return logits, err
}

func forward(tokens, at int, data []byte) frame {
	return frame{request{header: header{Op: "forward", Tokens: tokens, At: at}}, data}
}

// computeAll has the parts compute frames, and passes the logits of each on, in their order.
func (m Model) computeAll(parts []*conn, frames []frame, each func([]float32)) error {
	if !m.Add {
		return m.pipeline(parts, frames, each)
	}
	for _, f := range frames {
		logits, err := m.addUp(parts, f.request, f.data)
		if err != nil {
			return err
		}
		each(logits)
	}
	return nil
}

// results is how many values the parts compute of what is in a frame.
func (m Model) results(r request) int { return m.Vocabulary * max(len(r.Texts), 1) }

// frame is a header with what a part has computed for some tokens.
type frame struct {
	request
	data []byte
}

// pipeline passes frames through all parts: a part computes one while the next part computes what
// was before it.
func (m Model) pipeline(parts []*conn, frames []frame, each func([]float32)) error {
	first := make(chan frame, len(frames))
	for _, f := range frames {
		first <- f
	}
	close(first)
	var stages sync.WaitGroup
	var failed failure
	in := (<-chan frame)(first)
	for i := range parts {
		from, to := in, make(chan frame)
		stages.Go(func() {
			defer close(to)
			if err := m.stage(parts[i], i == len(parts)-1, from, to); err != nil {
				failed.set(&PartError{i, err}, parts)
			}
			for range from { // so that nobody waits for this part
			}
		})
		in = to
	}
	for p := range in {
		each(floats(p.data))
	}
	stages.Wait()
	return failed.err
}

// failure is the first one of several parts.
type failure struct {
	once sync.Once
	err  error
}

// set keeps the error, if it is the first one, and ends the connections, so that all parts end.
func (f *failure) set(err error, parts []*conn) {
	f.once.Do(func() {
		f.err = err
		for _, c := range parts {
			_ = c.Close() // nothing is left to be written
		}
	})
}

// stage has a part compute what comes from the one before it.
func (m Model) stage(c *conn, last bool, from <-chan frame, to chan<- frame) error {
	for p := range from {
		data, err := m.pass(c, p, last)
		if err != nil {
			return err
		}
		to <- frame{p.request, data}
	}
	return nil
}

// pass passes data to a part, and returns the hidden states or, of the last part, the logits.
func (m Model) pass(c *conn, p frame, last bool) ([]byte, error) {
	var answer header
	result, err := c.ask(p.request, p.data, &answer)
	want := 4 * p.Tokens * m.Hidden
	if last {
		want = 4 * m.results(p.request)
	}
	if err == nil && (answer != (header{Tokens: p.Tokens, At: p.At + p.Tokens}) || len(result) != want) {
		err = errUnfit
	}
	return result, err
}

// maxSums bounds the sums for some tokens: two of each layer, and the embedding.
const maxSums = 2*maxNeeded + 1

// addUp passes data to all parts at once, and to all the sum of what they return, until they
// return the logits of some tokens each. Sums are in float32 and in the order of the parts. The first
// one says how wide they are; others may have nothing to add if they have experts.
func (m Model) addUp(parts []*conn, h request, data []byte) ([]float32, error) {
	var sums []float32
	for range maxSums + 1 {
		for i, c := range parts {
			if err := c.send(h, data); err != nil {
				return nil, &PartError{i, err}
			}
		}
		logits, err := m.receiveAll(parts, h, &sums)
		if err != nil || logits != nil {
			return logits, err
		}
		h.Op, data = "sum", bytesOf(sums)
	}
	return nil, &PartError{len(parts) - 1, errUnfit}
}

// receiveAll sets the sums of what the parts answer, one after the other, or returns their logits.
func (m Model) receiveAll(parts []*conn, h request, sums *[]float32) (logits []float32, err error) {
	results, widest := m.results(h), 2*h.Tokens*m.Hidden // hidden states, and beside them what routes them to experts
	want := header{}
	for i, c := range parts {
		var answer header
		payload, err := c.receive(&answer, 4*max(widest, results))
		if i == 0 {
			want = header{Tokens: h.Tokens, At: h.At, Add: answer.Add}
			if !want.Add {
				want.At += h.Tokens
			} else if err == nil {
				*sums, err = sumsOf(len(payload)/4, h.Tokens, widest)
			}
		}
		switch {
		case err != nil:
		case answer == want && want.Add && (len(payload) == 4*len(*sums) || len(payload) == 0 && m.Experts):
			add(*sums, payload)
		case answer == want && !want.Add && len(payload)%4 == 0 && len(logits)+len(payload)/4 <= results:
			logits = append(logits, floats(payload)...)
		default:
			err = errUnfit
		}
		if err != nil {
			return nil, &PartError{i, err}
		}
	}
	if !want.Add && len(logits) != results {
		return nil, &PartError{len(parts) - 1, errUnfit}
	}
	return logits, nil
}

// sumsOf are n sums for some tokens, which begin at 0.
func sumsOf(n, tokens, most int) ([]float32, error) {
	if n == 0 || n > most || n%tokens != 0 {
		return nil, errUnfit
	}
	return make([]float32, n), nil
}

// add adds the values of a payload.
func add(sums []float32, payload []byte) {
	for i := range len(payload) / 4 {
		sums[i] += math.Float32frombits(binary.LittleEndian.Uint32(payload[4*i:]))
	}
}

// floats are the values of a payload.
func floats(data []byte) []float32 {
	values := make([]float32, len(data)/4)
	_, _ = binary.Decode(data, binary.LittleEndian, values) // they have the size
	return values
}

// bytesOf is a payload of tokens or values.
func bytesOf[T int32 | float32](list []T) []byte {
	data, _ := binary.Append(make([]byte, 0, 4*len(list)), binary.LittleEndian, list) // they have a size
	return data
}
