package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
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

// readJSON decodes a body into a type, or into any for validation against a schema. A
// number without a fraction is an integer however it is written, such as 1.0 or 1e3 (JSON
// Schema Validation 2020-12, section 6.1.1).
func readJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errEncoding
	}
	loose, ok := v.(*any)
	if !ok {
		err := json.Unmarshal(data, v)
		if wrong := (*json.UnmarshalTypeError)(nil); !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Value, "number") {
			return err
		}
		var plain any
		if err := readJSON(data, &plain); err != nil {
			return err
		}
		if data, err = json.Marshal(plain); err != nil {
			return err
		}
		return json.Unmarshal(data, v)
	}
	if !json.Valid(data) {
		return json.Unmarshal(data, v) // returns an error with the position
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(loose); err != nil {
		return err
	}
	*loose = numbers(*loose)
	return nil
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
