package serving

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
)

// Limits of a frame, in bytes.
const (
	maxHeader  = 64 << 10
	maxPayload = 64 << 20
)

// nonceBytes is the size of what each side proves the key over.
const nonceBytes = 32

// Version is that of the protocol. A part whose program has another one is started again.
const Version = 3

// Status is how far a part is, and what it does. Sequences are counted by the first part.
type Status struct {
	Ready     bool   `json:"ready"`
	Progress  int64  `json:"progress"`  // of loading, percent
	Library   string `json:"library"`   // that computes: numpy or torch
	Device    string `json:"device"`    // on which it computes: cuda or cpu
	Version   int64  `json:"version"`   // of the protocol; 0 before it had one
	Begun     int64  `json:"begun"`     // sequences since its start
	Computing int64  `json:"computing"` // sequences that have not ended
	Busy      *int64 `json:"busy"`      // milliseconds that it has computed since its start; nil: of a version that does not say it
	Active    int64  `json:"active"`    // milliseconds that it has had sequences; only of the first part
	Memory    int64  `json:"memory"`    // the most bytes so far, on its GPU or, on CPUs, of its process; 0: not known
}

// header is that of a frame.
type header struct {
	Op     string `json:"op,omitempty"` // status, begin, forward, sum or render
	Tokens int    `json:"tokens,omitempty"`
	At     int    `json:"at"`              // position of the first token, from 0
	Add    bool   `json:"add,omitempty"`   // of an answer: the sum with those of the other parts is awaited
	Error  string `json:"error,omitempty"` // of an answer: why a conversation cannot be rendered
}

// request is a header to a part.
type request struct {
	header
	Texts []int `json:"texts,omitempty"` // to embed: how many tokens each has
}

// conn is an authenticated connection to a part.
type conn struct {
	net.Conn
	stop func() bool
}

// dial connects to a part and proves the key. The connection ends with ctx.
func dial(ctx context.Context, open func(context.Context) (net.Conn, error), key []byte) (*conn, error) {
	c, err := open(ctx)
	if err != nil {
		return nil, err
	}
	result := &conn{c, context.AfterFunc(ctx, func() { _ = c.Close() })}
	if err := result.authenticate(key); err != nil {
		result.close()
		return nil, err
	}
	return result, nil
}

func (c *conn) close() {
	c.stop()
	_ = c.Close() // nothing is left to be written
}

// authenticate proves the key to the part, and has the part prove it.
func (c *conn) authenticate(key []byte) error {
	theirs, mine := make([]byte, nonceBytes), make([]byte, nonceBytes)
	if _, err := rand.Read(mine); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, theirs); err != nil {
		return err
	}
	if _, err := c.Write(append(bytes.Clone(mine), sign(key, "front", theirs, mine)...)); err != nil {
		return err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(c, proof); err != nil {
		return err
	}
	if !hmac.Equal(proof, sign(key, "part", mine, theirs)) {
		return errors.New("what answers does not have the key")
	}
	return nil
}

func sign(key []byte, who string, nonces ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(who))
	for _, n := range nonces {
		h.Write(n)
	}
	return h.Sum(nil)
}

// ask sends a frame and returns the answer, whose header goes to into.
func (c *conn) ask(h any, payload []byte, into any) ([]byte, error) {
	if err := c.send(h, payload); err != nil {
		return nil, err
	}
	return c.receive(into, maxPayload)
}

func (c *conn) send(h any, payload []byte) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(payload) > maxPayload {
		return fmt.Errorf("a payload of %d bytes is too large", len(payload))
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	frame = append(binary.LittleEndian.AppendUint32(frame, uint32(len(payload))), text...)
	buffers := net.Buffers{frame}
	if len(payload) > 0 {
		buffers = append(buffers, payload)
	}
	_, err = buffers.WriteTo(c.Conn)
	return err
}

// receive returns the payload of a frame of at most so many bytes, whose header goes to into.
func (c *conn) receive(into any, most int) ([]byte, error) {
	var sizes [8]byte
	if _, err := io.ReadFull(c, sizes[:]); err != nil {
		return nil, err
	}
	head, size := binary.LittleEndian.Uint32(sizes[:4]), binary.LittleEndian.Uint32(sizes[4:])
	if head > maxHeader || int(size) > most {
		return nil, errors.New("the answer is too large")
	}
	answer := make([]byte, head+size)
	if _, err := io.ReadFull(c, answer); err != nil {
		return nil, err
	}
	return answer[head:], json.Unmarshal(answer[:head], into)
}

// Ask returns how far a part is.
func Ask(ctx context.Context, open func(context.Context) (net.Conn, error), key []byte) (s Status, err error) {
	c, err := dial(ctx, open, key)
	if err != nil {
		return s, err
	}
	defer c.close()
	_, err = c.ask(header{Op: "status"}, nil, &s)
	s.Progress = min(max(s.Progress, 0), 100)
	return s, err
}
