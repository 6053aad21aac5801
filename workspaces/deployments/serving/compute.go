package serving

import (
	"encoding/binary"
	"errors"
	"math"
)

var errUnfit = errors.New("the answer does not fit the request")

// compute has the parts compute tokens from a position on, and returns the logits of the last
// one. The error is a *PartError.
func (m Model) compute(parts []*conn, tokens []int32, at int) ([]float32, error) {
	data := make([]byte, 0, 4*len(tokens))
	for _, t := range tokens {
		data = binary.LittleEndian.AppendUint32(data, uint32(t))
	}
	h := header{Op: "forward", Tokens: len(tokens), At: at}
	if m.Add {
		return m.addUp(parts, h, data)
	}
	return m.passOn(parts, h, data)
}

// passOn passes data through all parts, one after the other.
func (m Model) passOn(parts []*conn, h header, data []byte) ([]float32, error) {
	for i, c := range parts {
		var answer header
		result, err := c.ask(h, data, &answer)
		want := 4 * h.Tokens * m.Hidden
		if i == len(parts)-1 {
			want = 4 * m.Vocabulary
		}
		if err == nil && (answer != (header{Tokens: h.Tokens, At: h.At + h.Tokens}) || len(result) != want) {
			err = errUnfit
		}
		if err != nil {
			return nil, &PartError{i, err}
		}
		data = result
	}
	return floats(data), nil
}

// maxSums bounds the sums for some tokens: two of each layer, and the embedding.
const maxSums = 2*maxNeeded + 1

// addUp passes data to all parts at once, and to all the sum of what they return, until they
// return the logits of some tokens each. Sums are in float32 and in the order of the parts.
func (m Model) addUp(parts []*conn, h header, data []byte) ([]float32, error) {
	sums := make([]float32, h.Tokens*m.Hidden)
	for range maxSums + 1 {
		for i, c := range parts {
			if err := c.send(h, data); err != nil {
				return nil, &PartError{i, err}
			}
		}
		logits, err := m.receiveAll(parts, h, sums)
		if err != nil || logits != nil {
			return logits, err
		}
		h.Op, data = "sum", bytesOf(sums)
	}
	return nil, &PartError{len(parts) - 1, errUnfit}
}

// receiveAll sets the sums of what the parts answer, one after the other, or returns their logits.
func (m Model) receiveAll(parts []*conn, h header, sums []float32) (logits []float32, err error) {
	clear(sums)
	want := header{}
	for i, c := range parts {
		var answer header
		payload, err := c.receive(&answer, 4*max(len(sums), m.Vocabulary))
		if i == 0 {
			want = header{Tokens: h.Tokens, At: h.At, Add: answer.Add}
			if !want.Add {
				want.At += h.Tokens
			}
		}
		switch {
		case err != nil:
		case answer == want && want.Add && len(payload) == 4*len(sums):
			add(sums, payload)
		case answer == want && !want.Add && len(payload)%4 == 0 && len(logits)+len(payload)/4 <= m.Vocabulary:
			logits = append(logits, floats(payload)...)
		default:
			err = errUnfit
		}
		if err != nil {
			return nil, &PartError{i, err}
		}
	}
	if !want.Add && len(logits) != m.Vocabulary {
		return nil, &PartError{len(parts) - 1, errUnfit}
	}
	return logits, nil
}

// add adds the values of a payload.
func add(sums []float32, payload []byte) {
	for i := range sums {
		sums[i] += math.Float32frombits(binary.LittleEndian.Uint32(payload[4*i:]))
	}
}

// floats are the values of a payload.
func floats(data []byte) []float32 {
	values := make([]float32, len(data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

// bytesOf is a payload of values.
func bytesOf(values []float32) []byte {
	data := make([]byte, 0, 4*len(values))
	for _, x := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}
