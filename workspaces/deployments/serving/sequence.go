package serving

import (
	"context"
	"fmt"
	"net"
)

// Model is what is served: parts that data passes one after the other, or that compute what is added
// up in each layer.
type Model struct {
	Key        []byte // of the parts
	Hidden     int    // width of the hidden states
	Vocabulary int    // number of tokens, of classes, or of the values of an embedding
	Add        bool   // the parts have some attention heads or experts of all layers each
	Experts    bool   // they have experts
	Parts      []func(context.Context) (net.Conn, error)
}

// Sequence is what a model computes one after the other, over a connection to each of its parts.
type Sequence struct {
	model Model
	parts []*conn
}

// Begin waits until the first part has room for another sequence, and connects to the others. It
// ends with ctx. A failure of a part is a *PartError; nothing is computed then.
func (m Model) Begin(ctx context.Context) (*Sequence, error) {
	s := &Sequence{model: m}
	for i, open := range m.Parts {
		c, err := dial(ctx, open, m.Key)
		if err == nil {
			s.parts = append(s.parts, c)
		}
		if err == nil && i == 0 {
			_, err = c.ask(header{Op: "begin"}, nil, &header{})
		}
		if err != nil {
			s.Close()
			return nil, &PartError{i, err}
		}
	}
	return s, nil
}

// Close ends the sequence. It can be repeated.
func (s *Sequence) Close() {
	for _, c := range s.parts {
		c.close()
	}
}

// PartError is the failure of a part, by its number from 0.
type PartError struct {
	Part int
	Err  error
}

func (e *PartError) Error() string { return fmt.Sprintf("part %d: %v", e.Part, e.Err) }

func (e *PartError) Unwrap() error { return e.Err }
