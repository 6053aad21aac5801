package models

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"
)

// Text is a sentence for a person: an English format of the catalog and its
// arguments, so that a page can show it in the reader's language. The zero
// Text is the empty sentence.
type Text struct {
	Format string
	Args   []any
}

// Say makes a Text. Arguments must survive JSON: strings, numbers, Instants, Texts.
func Say(format string, args ...any) Text { return Text{Format: format, Args: args} }

// Join makes one Text of several, separated by semicolons.
func Join(list ...Text) (all Text) {
	for i, t := range list {
		if i == 0 {
			all = t
		} else {
			all = Say("%s; %s", all, t)
		}
	}
	return all
}

// Render renders a sentence in a language.
func Render(language, format string, args ...any) string { return Say(format, args...).In(language) }

// String renders the sentence in English.
func (t Text) String() string { return t.In(English) }

// Empty reports whether the text is empty.
func (t Text) Empty() bool { return t.Format == "" }

// In renders the sentence and the Texts among its arguments in a language, with times in
// UTC. A format that is not in the catalog stays as it is.
func (t Text) In(language string) string { return t.InZone(language, time.UTC) }

// InZone is In with times in a time zone.
func (t Text) InZone(language string, zone *time.Location) string {
	format := texts.format(language, t)
	if len(t.Args) == 0 {
		return format
	}
	args := make([]any, len(t.Args))
	for i, a := range t.Args {
		switch v := a.(type) {
		case Text:
			a = v.InZone(language, zone)
		case Instant:
			a = v.in(zone)
		case string:
			if v == unlimitedSign {
				a = Say("unlimited").In(language)
			}
		}
		args[i] = a
	}
	return fmt.Sprintf(format, args...)
}

// MarshalJSON writes the text as it is stored: by its key, for records that
// are shown later, in whichever language. Responses to programs use String.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.stored()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s storedText
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("models.Text: %w", err)
	}
	*t = s.text()
	return nil
}

// storedText is a Text as a row has it: with the key of the catalog, so
// that its wording can change without the row. Rows from before there were
// keys have the English format of their time.
type storedText struct {
	Key    string      `json:"k,omitempty"`
	Format string      `json:"f,omitempty"`
	Args   []storedArg `json:"a,omitempty"`
}

type storedArg struct {
	Int   *int64      `json:"i,omitempty"`
	Float *float64    `json:"n,omitempty"`
	Str   *string     `json:"s,omitempty"`
	Text  *storedText `json:"t,omitempty"`

	// An Instant, beside its Str for servers that do not know it.
	At   *time.Time `json:"m,omitempty"`
	Date bool       `json:"d,omitempty"`
}

func (t Text) stored() storedText {
	out := storedText{Key: texts.keys[t.Format]}
	if out.Key == "" {
		out.Format = t.Format
	}
	for _, a := range t.Args {
		out.Args = append(out.Args, storeArg(a))
	}
	return out
}

func storeArg(a any) storedArg {
	switch v := a.(type) {
	case int:
		return storedArg{Int: new(int64(v))}
	case int64:
		return storedArg{Int: &v}
	case float64:
		return storedArg{Float: &v}
	case Instant:
		return storedArg{Str: new(v.String()), At: &v.At, Date: v.Date}
	case Text:
		return storedArg{Text: new(v.stored())}
	default:
		return storedArg{Str: new(fmt.Sprint(v))}
	}
}

func (s storedText) text() Text {
	t := Text{Format: texts.current(s.Key, s.Format)}
	for _, a := range s.Args {
		switch {
		case a.Int != nil:
			t.Args = append(t.Args, *a.Int)
		case a.Float != nil:
			t.Args = append(t.Args, *a.Float)
		case a.At != nil:
			t.Args = append(t.Args, Instant{*a.At, a.Date})
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

// Value stores the Text with its arguments, so that it can be translated
// when it is read again.
func (t Text) Value() (driver.Value, error) {
	if t.Empty() {
		return "", nil
	}
	b, err := json.Marshal(t.stored())
	return string(b), err
}

// Scan reads what Value stored.
func (t *Text) Scan(src any) error {
	var raw sql.NullString
	if err := raw.Scan(src); err != nil {
		return err
	}
	if raw.String == "" {
		*t = Text{}
		return nil
	}
	return t.UnmarshalJSON([]byte(raw.String))
}

// GormDataType implements gorm's schema.GormDataTypeInterface.
func (Text) GormDataType() string { return "text" }
