package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat reads and writes bodies.
var jsonFormat = huma.Format{Marshal: writeJSON, Unmarshal: readJSON}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

var errEncoding = errors.New("it is not UTF-8")

// readJSON decodes a body into any for validation against a schema, or into a type. What is
// decoded into a type is what was validated, not the body: that can have a key twice. A number
// whose float64 has no fraction and is below 2^53 is an integer however it is written, such as
// 1.0 or 1e3 (JSON Schema Validation 2020-12, section 6.1.1).
func readJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errEncoding
	}
	if !json.Valid(data) {
		return json.Unmarshal(data, v) // returns an error with the position
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return err
	}
	plain = numbers(plain)
	if loose, ok := v.(*any); ok {
		*loose = plain
		return nil
	}
	data, err := json.Marshal(plain)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// exactIntegers is the first number from which on a float64 does not tell integers apart.
const exactIntegers = 1 << 53

// numbers replaces each json.Number by an int64, or by a float64 if it has a fraction. Others
// remain, which no schema accepts, so that the error names the field and no integer is rounded.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		switch f, err := v.Float64(); {
		case err != nil || math.Abs(f) >= exactIntegers:
		case f == math.Trunc(f):
			return int64(f)
		default:
			return f
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
