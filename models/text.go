package models

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
)

// Text is a sentence for users, stored as an English format and its arguments so
// that it can be shown in the reader's language. The format is the key into the
// catalogue. The zero Text is empty.
type Text struct {
	Format string
	Args   []any
}

// Say creates a Text. Arguments must survive JSON: strings, numbers, Texts.
func Say(format string, args ...any) Text { return Text{Format: format, Args: args} }

// String renders the sentence in English.
func (t Text) String() string { return t.Render(func(s string) string { return s }) }

// Empty reports whether the text is empty.
func (t Text) Empty() bool { return t.Format == "" }

// Render formats the sentence after passing every format, its own and those
// of nested Texts, through translate.
func (t Text) Render(translate func(string) string) string {
	if len(t.Args) == 0 {
		return translate(t.Format)
	}
	args := make([]any, len(t.Args))
	for i, a := range t.Args {
		if nested, ok := a.(Text); ok {
			a = nested.Render(translate)
		}
		args[i] = a
	}
	return fmt.Sprintf(translate(t.Format), args...)
}

// MarshalJSON encodes the format and the arguments, so that the text can be
// translated later. API responses use String.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.stored()) }

// UnmarshalJSON decodes what MarshalJSON encoded.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s storedText
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("models.Text: %w", err)
	}
	*t = s.text()
	return nil
}

type storedText struct {
	Format string      `json:"f"`
	Args   []storedArg `json:"a,omitempty"`
}

type storedArg struct {
	Int   *int64      `json:"i,omitempty"`
	Float *float64    `json:"n,omitempty"`
	Str   *string     `json:"s,omitempty"`
	Text  *storedText `json:"t,omitempty"`
}

func (t Text) stored() storedText {
	out := storedText{Format: t.Format}
	for _, a := range t.Args {
		out.Args = append(out.Args, storeArg(a))
	}
	return out
}

func storeArg(a any) storedArg {
	switch v := a.(type) {
	case int:
		n := int64(v)
		return storedArg{Int: &n}
	case int64:
		return storedArg{Int: &v}
	case float64:
		return storedArg{Float: &v}
	case Text:
		s := v.stored()
		return storedArg{Text: &s}
	default:
		s := fmt.Sprint(v)
		return storedArg{Str: &s}
	}
}

func (s storedText) text() Text {
	t := Text{Format: s.Format}
	for _, a := range s.Args {
		switch {
		case a.Int != nil:
			t.Args = append(t.Args, *a.Int)
		case a.Float != nil:
			t.Args = append(t.Args, *a.Float)
		case a.Text != nil:
			t.Args = append(t.Args, a.Text.text())
		case a.Str != nil:
			t.Args = append(t.Args, *a.Str)
		default:
			t.Args = append(t.Args, "")
		}
	}
	return t
}

// Value stores the format and the arguments, so that the text can be translated
// later.
func (t Text) Value() (driver.Value, error) {
	if t.Empty() {
		return "", nil
	}
	b, err := json.Marshal(t.stored())
	return string(b), err
}

// Scan reads what Value stored.
func (t *Text) Scan(src any) error {
	var raw []byte
	switch v := src.(type) {
	case nil:
	case string:
		raw = []byte(v)
	case []byte:
		raw = v
	default:
		return errors.New("models.Text: cannot scan this type")
	}
	if len(raw) == 0 {
		*t = Text{}
		return nil
	}
	var s storedText
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("models.Text: %w", err)
	}
	*t = s.text()
	return nil
}

// GormDataType makes a Text a text column.
func (Text) GormDataType() string { return "text" }
