package onnx

import (
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"weir/models"
)

const (
	maxFields  = 2_000_000 // of a model, also those that are skipped
	maxText    = 4 << 10   // bytes of a name
	maxTexts   = 32 << 20  // bytes of all names
	maxNumbers = 64        // of a list
	windowSize = 64 << 10
)

// source is a file that is read through a window.
type source struct {
	r      io.ReaderAt
	window []byte
	from   int64 // of the window in the file
	fields int
	texts  int
	why    models.Text // the file is refused
	err    error       // it cannot be read
}

// section is the bytes of a message.
type section struct {
	*source
	at, until int64
}

// field is a field of a message: a number, or the section of its content.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64
	at     int64 // of its tag
	body   section
}

func (s *source) failed() bool { return s.err != nil || !s.why.Empty() }

func (s *source) malformed() { s.why = models.Say("it is not a model in ONNX format") }

func (s *source) tooLarge() { s.why = models.Say("it has too many operators, tensors or names") }

// bytes are n bytes, at most those of a window. A file can have become shorter.
func (s *source) bytes(at int64, n int) []byte {
	if s.window == nil || at < s.from || at+int64(n) > s.from+int64(len(s.window)) {
		if cap(s.window) == 0 {
			s.window = make([]byte, windowSize)
		}
		read, err := s.r.ReadAt(s.window[:windowSize], at)
		s.from, s.window = at, s.window[:read]
		if read < n {
			if s.malformed(); !errors.Is(err, io.EOF) {
				s.err = err
			}
			return make([]byte, n)
		}
	}
	return s.window[at-s.from:][:n]
}

// next is the next field; false at the end, or if the file is refused.
func (s *section) next() (f field, ok bool) {
	if s.at >= s.until || s.failed() {
		return f, false
	}
	if s.fields++; s.fields > maxFields {
		s.tooLarge()
		return f, false
	}
	const most = 20 // bytes of a tag and a number
	head := s.bytes(s.at, int(min(most, s.until-s.at)))
	number, kind, n := protowire.ConsumeTag(head)
	if n < 0 {
		s.malformed()
		return f, false
	}
	f.number, f.kind, f.at = number, kind, s.at
	size := 0
	switch head = head[n:]; kind {
	case protowire.VarintType, protowire.BytesType:
		f.value, size = protowire.ConsumeVarint(head)
	case protowire.Fixed32Type:
		_, size = protowire.ConsumeFixed32(head)
	case protowire.Fixed64Type:
		_, size = protowire.ConsumeFixed64(head)
	default:
		size = -1 // groups, which ONNX does not have
	}
	if s.at += int64(n + size); size < 0 || kind == protowire.BytesType && f.value > uint64(s.until-s.at) {
		s.malformed()
		return f, false
	}
	f.body = section{s.source, s.at, s.at}
	if kind == protowire.BytesType {
		f.body.until += int64(f.value)
		s.at = f.body.until
	}
	return f, !s.failed()
}

// text is the content of a name.
func (f field) text() string {
	n := f.body.until - f.body.at
	if f.body.texts += int(min(n, maxText)); n > maxText || f.body.texts > maxTexts {
		f.body.tooLarge()
		return ""
	}
	return string(f.body.bytes(f.body.at, int(n)))
}

// numbers appends the numbers of a list, which are in one field or in a field each, up to
// maxNumbers.
func (f field) numbers(to []int64) []int64 {
	if f.kind == protowire.VarintType && len(to) < maxNumbers {
		return append(to, int64(f.value))
	}
	for s := f.body; s.at < s.until && len(to) < maxNumbers && !s.failed(); {
		v, n := protowire.ConsumeVarint(s.bytes(s.at, int(min(10, s.until-s.at))))
		if n < 0 {
			s.malformed()
			return to
		}
		s.at, to = s.at+int64(n), append(to, int64(v))
	}
	return to
}
