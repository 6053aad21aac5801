package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
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

// readJSON decodes a body into a type, or into any for validation against a schema.
// There, a number that is not a 64-bit integer remains a json.Number, which no schema
// accepts, so that the error names the field and no value is rounded.
func readJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errEncoding
	}
	loose, ok := v.(*any)
	if !ok {
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
	*loose = integers(*loose)
	return nil
}

func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}
