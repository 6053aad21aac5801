package models

import (
	"embed"
	"encoding/json"
)

// Languages of texts.
const (
	English = "en"
	Chinese = "zh"
)

// catalogFiles are en.json and zh.json, which map the stable key of each
// sentence to its wording, and former.json, which maps the English formats of
// old rows to keys.
//
//go:embed catalog/*.json
var catalogFiles embed.FS

// wording is a sentence in one language. In the files it is a string, or an
// object when its form depends on a number: {"one": …, "other": …, "count": N}
// with the number of that argument, from 1.
type wording struct {
	One   string `json:"one"`
	Other string `json:"other"`
	Count int    `json:"count"`
}

func (w *wording) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &w.Other)
	}
	type plain wording
	return json.Unmarshal(b, (*plain)(w))
}

// catalog is all sentences in all languages.
type catalog struct {
	words  map[string]map[string]wording // by language and key
	keys   map[string]string             // by English format
	former map[string]string             // keys by English formats of the past
}

var texts = mustCatalog()

func mustCatalog() (c catalog) {
	c.words, c.keys = map[string]map[string]wording{English: {}, Chinese: {}}, map[string]string{}
	for name, into := range map[string]any{"en": new(c.words[English]), "zh": new(c.words[Chinese]), "former": &c.former} {
		b, err := catalogFiles.ReadFile("catalog/" + name + ".json")
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			panic("models: catalog " + name + ": " + err.Error())
		}
	}
	for key, w := range c.words[English] {
		c.keys[w.Other] = key
	}
	return c
}

// format is the format of a text in a language, in the form that its count
// needs.
func (c catalog) format(lang string, t Text) string {
	key, known := c.keys[t.Format]
	if !known {
		return t.Format
	}
	w, known := c.words[lang][key]
	if !known {
		w = c.words[English][key]
	}
	if w.One != "" && w.Count <= len(t.Args) && one(lang, t.Args[w.Count-1]) {
		return w.One
	}
	return w.Other
}

// one reports whether a language uses the singular for n: English for 1, Chinese has none
// (CLDR, Language Plural Rules).
func one(lang string, n any) bool {
	return lang == English && (n == 1 || n == int64(1))
}

// current is the English format of a stored text today, by its key or, in an
// old row, by its English format of that time.
func (c catalog) current(key, format string) string {
	if key == "" {
		key = c.former[format]
	}
	if w, known := c.words[English][key]; known {
		return w.Other
	}
	if format == "" {
		return key // written by a newer version
	}
	return format
}
