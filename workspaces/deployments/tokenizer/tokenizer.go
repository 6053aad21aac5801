package tokenizer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Tokenizer is that of a model. It is safe for concurrent use.
type Tokenizer struct {
	added     *regexp.Regexp   // finds tokens that are no pieces of text; nil: there are none
	addedIDs  map[string]int32 // by their text
	normalize func(string) string
	split     []splitter
	model     interface {
		// encode appends the tokens of a piece of text.
		encode(tokens []int32, piece string) []int32
	}
	before  []int32          // tokens before every text
	after   []int32          // and behind it
	texts   map[int32]string // bytes of each token
	special map[int32]bool   // tokens that are no text
}

// splitter cuts a piece of text into smaller ones.
type splitter func(text string) []string

// Encode returns the tokens of a text, with those that the tokenizer puts around each text.
func (t *Tokenizer) Encode(text string) []int32 {
	return append(t.encode(slices.Clone(t.before), text), t.after...)
}

// EncodeWhole returns the tokens of a text that has those already that are around each text, such
// as a conversation by the template of a model.
func (t *Tokenizer) EncodeWhole(text string) []int32 { return t.encode(nil, text) }

func (t *Tokenizer) encode(tokens []int32, text string) []int32 {
	for text != "" {
		at := []int{len(text), len(text)}
		if t.added != nil {
			if found := t.added.FindStringIndex(text); found != nil {
				at = found
			}
		}
		tokens = t.encodePlain(tokens, text[:at[0]])
		if at[0] < at[1] {
			tokens = append(tokens, t.addedID(text[at[0]:at[1]]))
		}
		text = text[at[1]:]
	}
	return tokens
}

// addedID is the added token that was found, with spaces around it if it takes them.
func (t *Tokenizer) addedID(found string) int32 {
	if id, ok := t.addedIDs[found]; ok {
		return id
	}
	return t.addedIDs[strings.TrimFunc(found, unicode.IsSpace)]
}

// encodePlain appends the tokens of a text without added ones.
func (t *Tokenizer) encodePlain(tokens []int32, text string) []int32 {
	if text == "" {
		return tokens
	}
	if text = t.normalize(text); text == "" {
		return tokens
	}
	pieces := []string{text}
	for _, split := range t.split {
		var next []string
		for _, piece := range pieces {
			next = append(next, split(piece)...)
		}
		pieces = next
	}
	for _, piece := range pieces {
		tokens = t.model.encode(tokens, piece)
	}
	return tokens
}

// Bytes are those of a token in a text; none of one that is no text. A character can be of
// several tokens.
func (t *Tokenizer) Bytes(token int32) string {
	if t.special[token] {
		return ""
	}
	return t.texts[token]
}
