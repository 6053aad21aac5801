package shard

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"weir/models"
)

const (
	// maxHeader is the most bytes of a header: some 200,000 tensors. The format permits 100 MB, which
	// nobody needs and which would take several times that to read.
	maxHeader = 32_000_000
	// maxHeaders is the most bytes of all headers of a model, and of its index.
	maxHeaders = 100_000_000
	// maxTensors is the most tensors of a model.
	maxTensors = 1_000_000
	// maxRank is the most dimensions of a tensor.
	maxRank = 16
	// sizeBytes is the size of the size of a header.
	sizeBytes = 8
)

// typeBits is the size of a value of each data type in bits.
var typeBits = map[string]uint64{"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}

// File is a safetensors file.
type File struct {
	Name    string
	Size    int64    // bytes
	Header  int64    // bytes before the tensors
	Tensors []Tensor // in the order of their bytes

	Metadata map[string]string
}

// errJSON is inside the refusal of a text that is not the JSON that it should be.
var errJSON = errors.New("unexpected JSON")

// ReadFile reads the header of a safetensors file of a size. It is somebody's file: it is
// refused unless its tensors cover it from the header to the end, each once.
func ReadFile(name string, r io.ReaderAt, size int64) (File, error) {
	text, err := ReadHeader(name, r, size)
	if err != nil {
		return File{}, err
	}
	return ParseHeader(name, text, size)
}

// ParseHeader reads the JSON of a header of a file of a size.
func ParseHeader(name string, text []byte, size int64) (File, error) {
	f := File{Name: name, Size: size, Header: sizeBytes + int64(len(text))}
	if !IsName(name) {
		return File{}, refuse(name, notName(name))
	}
	if why := f.parse(text); !why.Empty() {
		return File{}, refuse(name, why)
	}
	return f, nil
}

// ReadHeader reads the JSON of a header, without its size before it.
func ReadHeader(name string, r io.ReaderAt, size int64) ([]byte, error) {
	var head [sizeBytes]byte
	if size < sizeBytes {
		return nil, refuse(name, models.Say("it is truncated: it has %d bytes", size))
	}
	if err := readFull(r, head[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader {
		return nil, refuse(name, models.Say("its header has more than %d MB", int64(maxHeader/1_000_000)))
	}
	if int64(n) > size-sizeBytes {
		return nil, refuse(name, models.Say("it is truncated: its header needs %d bytes and the file has %d", int64(n)+sizeBytes, size))
	}
	text := make([]byte, n)
	return text, readFull(r, text, sizeBytes)
}

// parse reads the tensors; the text says why it cannot.
func (f *File) parse(text []byte) (why models.Text) {
	if !utf8.Valid(text) || len(text) == 0 || text[0] != '{' {
		return models.Say("its header is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	err := object(d, func(name string) error {
		if name == "__metadata__" {
			return d.Decode(&f.Metadata)
		}
		if len(f.Tensors) == maxTensors {
			why = models.Say("it has more than %d tensors", int64(maxTensors))
			return errJSON
		}
		t, reason := f.tensor(d, name)
		f.Tensors, why = append(f.Tensors, t), reason
		if !why.Empty() {
			return errJSON
		}
		return nil
	})
	if repeated, ok := errors.AsType[repeatedKey](err); ok {
		return models.Say("the name %s occurs twice", models.VisibleName(string(repeated)))
	}
	if err == nil {
		_, end := d.Token()
		if !errors.Is(end, io.EOF) {
			err = errJSON
		}
	}
	if err != nil && why.Empty() {
		return models.Say("its header is not a JSON object")
	}
	if why.Empty() {
		why = f.checkOffsets()
	}
	return why
}

// tensor reads the description of a tensor.
func (f *File) tensor(d *json.Decoder, name string) (t Tensor, why models.Text) {
	var offsets []int64
	t.Name = name
	err := object(d, func(key string) error {
		switch key {
		case "dtype":
			return d.Decode(&t.Type)
		case "shape":
			return d.Decode(&t.Shape)
		case "data_offsets":
			return d.Decode(&offsets)
		}
		return errJSON
	})
	visible := models.VisibleName(name)
	if err != nil || len(offsets) != 2 || t.Shape == nil || t.Type == "" {
		return t, models.Say("the description of %s must have dtype, shape and data_offsets, each once, and nothing else", visible)
	}
	data := f.Size - f.Header
	if offsets[0] < 0 || offsets[1] < offsets[0] {
		return t, models.Say("the offsets of %s are not a range", visible)
	}
	if offsets[1] > data {
		return t, models.Say("it is truncated: %s ends at byte %d of %d", visible, offsets[1], data)
	}
	parameters, bytes, ok := sizeOf(t.Type, t.Shape)
	if !ok {
		return t, models.Say("the type or the shape of %s is not valid", visible)
	}
	if bytes != offsets[1]-offsets[0] {
		return t, models.Say("%s has %d bytes, and its shape needs %d", visible, offsets[1]-offsets[0], bytes)
	}
	t.Parameters, t.From, t.Until = parameters, f.Header+offsets[0], f.Header+offsets[1]
	return t, why
}

// sizeOf is the number of values of a tensor and its size in bytes.
func sizeOf(name string, shape []int64) (parameters, bytes int64, ok bool) {
	width, known := typeBits[name]
	n := uint64(1)
	for _, size := range shape {
		high, low := bits.Mul64(n, uint64(size))
		if size < 0 || high > 0 || low > math.MaxInt64 {
			return 0, 0, false
		}
		n = low
	}
	high, total := bits.Mul64(n, width)
	return int64(n), int64(total / 8), known && len(shape) <= maxRank && high == 0 && total%8 == 0
}

// checkOffsets sorts the tensors by their bytes, which must follow on each other.
func (f *File) checkOffsets() models.Text {
	slices.SortStableFunc(f.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Until, b.Until))
	})
	at := f.Header
	for _, t := range f.Tensors {
		if t.From < at {
			return models.Say("the bytes of %s overlap with those of another tensor", models.VisibleName(t.Name))
		}
		if t.From > at {
			return models.Say("there is a gap of %d bytes before %s", t.From-at, models.VisibleName(t.Name))
		}
		at = t.Until
	}
	if at != f.Size {
		return models.Say("there is a gap of %d bytes after the last tensor", f.Size-at)
	}
	return models.Text{}
}

// repeatedKey is the error about a key that an object has twice.
type repeatedKey string

func (repeatedKey) Error() string { return "repeated key" }

// object reads a JSON object. each reads the value of a key.
func object(d *json.Decoder, each func(key string) error) error {
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errJSON
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if seen[key] {
			return repeatedKey(key)
		}
		seen[key] = true
		if err := each(key); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// described is a tensor of a header that is written.
type described struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// AppendHeader appends the header of a file with tensors in their order, with its size before
// it, and padded so that the tensors begin at a multiple of 8.
func AppendHeader(to []byte, tensors []Placed, metadata map[string]string) ([]byte, error) {
	text, at := []byte("{"), int64(0)
	add := func(name string, value any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		content, err := json.Marshal(value)
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, key...), ':'), content...)
		return err
	}
	if len(metadata) > 0 {
		if err := add("__metadata__", metadata); err != nil {
			return nil, err
		}
	}
	for _, t := range tensors {
		if err := add(t.Name, described{t.Type, t.Shape, [2]int64{at, at + t.Bytes()}}); err != nil {
			return nil, err
		}
		at += t.Bytes()
	}
	text = append(text, '}')
	for len(text)%8 > 0 {
		text = append(text, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(to, uint64(len(text))), text...), nil
}
