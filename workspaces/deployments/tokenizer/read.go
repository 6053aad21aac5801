package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// file is a tokenizer.json.
type file struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *step        `json:"normalizer"`
	PreTokenizer  *step        `json:"pre_tokenizer"`
	PostProcessor *step        `json:"post_processor"`
	Decoder       *step        `json:"decoder"`
	Model         model        `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LeftStrip  bool   `json:"lstrip"`
	RightStrip bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type model struct {
	Type         string            `json:"type"`
	Dropout      *float64          `json:"dropout"`
	Prefix       string            `json:"continuing_subword_prefix"`
	Suffix       string            `json:"end_of_word_suffix"`
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	Unknown      string            `json:"unk_token"`
	MaxWord      int               `json:"max_input_chars_per_word"`
	Vocab        map[string]int32  `json:"vocab"`
	Merges       []json.RawMessage `json:"merges"`
}

// step is a normalizer, a pre-tokenizer, a post-processor or a decoder.
type step struct {
	Type string `json:"type"`

	PreTokenizers []step `json:"pretokenizers"` // of a sequence
	Processors    []step `json:"processors"`    // of a sequence

	Clean     bool  `json:"clean_text"`
	Chinese   bool  `json:"handle_chinese_chars"`
	Accents   *bool `json:"strip_accents"`
	Lowercase bool  `json:"lowercase"`

	AddPrefixSpace bool              `json:"add_prefix_space"`
	UseRegex       *bool             `json:"use_regex"`
	Pattern        map[string]string `json:"pattern"`
	Behavior       string            `json:"behavior"`
	Invert         bool              `json:"invert"`
	Individual     bool              `json:"individual_digits"`

	Single  []map[string]struct{ ID string } `json:"single"`
	Special map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
	Before [2]json.RawMessage `json:"cls"` // a text and a number
	Behind [2]json.RawMessage `json:"sep"`
}

// Read reads a tokenizer.json of a model with so many tokens. The error says why it cannot be
// used, for people.
func Read(content []byte, vocabulary int64) (*Tokenizer, error) {
	var f file
	if json.Unmarshal(content, &f) != nil {
		return nil, errors.New("it is not a JSON object of the expected form")
	}
	t := &Tokenizer{addedIDs: map[string]int32{}, texts: map[int32]string{}, special: map[int32]bool{}}
	for _, read := range []func(*file) error{t.readNormalizer, t.readModel, t.readAdded, t.readSplit, t.readAround} {
		if err := read(&f); err != nil {
			return nil, err
		}
	}
	tokens := slices.AppendSeq(slices.Concat(t.before, t.after), maps.Keys(t.texts))
	for _, token := range tokens {
		if token < 0 || int64(token) >= vocabulary {
			return nil, fmt.Errorf("it has a token %d, and the model has %d tokens", token, vocabulary)
		}
	}
	return t, nil
}

// readNormalizer reads what is done with a text before it is cut.
func (t *Tokenizer) readNormalizer(f *file) error {
	switch n := f.Normalizer; {
	case n == nil:
		t.normalize = func(text string) string { return text }
	case n.Type == "NFC":
		t.normalize = norm.NFC.String
	case n.Type == "BertNormalizer":
		t.normalize = n.cleaned
	default:
		return fmt.Errorf("the normalizer %q is not implemented", n.Type)
	}
	return nil
}

// readModel reads how pieces of text become tokens.
func (t *Tokenizer) readModel(f *file) error {
	m := f.Model
	switch {
	case m.Type == "WordPiece":
		return t.readWords(f)
	case m.Type != "BPE":
		return fmt.Errorf("the model %q is not implemented", m.Type)
	case m.ByteFallback || m.Prefix != "" || m.Suffix != "" || m.Dropout != nil && *m.Dropout != 0:
		return errors.New("byte_fallback, dropout and marks of subwords are not implemented")
	case f.Decoder == nil || f.Decoder.Type != "ByteLevel":
		return errors.New("its decoder is not ByteLevel")
	}
	b := &bpe{}
	t.model = b
	if err := t.readVocabulary(f, b); err != nil {
		return err
	}
	return b.readMerges(f)
}

// byteSymbols are the characters by which a vocabulary writes bytes: those that can be seen
// are themselves, and the others follow from U+0100 on.
func byteSymbols() (symbols [256]rune) {
	next := rune(256)
	for b := range 256 {
		symbols[b] = rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			symbols[b] = next
			next++
		}
	}
	return symbols
}

// readVocabulary reads the tokens, which need one for each byte.
func (t *Tokenizer) readVocabulary(f *file, b *bpe) error {
	bytes := map[rune]byte{}
	for n, symbol := range byteSymbols() {
		token, ok := f.Model.Vocab[string(symbol)]
		if !ok {
			return fmt.Errorf("it has no token for the byte %d", n)
		}
		b.bytes[n], bytes[symbol] = token, byte(n)
	}
	if f.Model.IgnoreMerges {
		b.whole = map[string]int32{}
	}
	for word, token := range f.Model.Vocab {
		text := make([]byte, 0, len(word))
		for _, symbol := range word {
			one, ok := bytes[symbol]
			if !ok { // an added token is also in the vocabulary, as its text
				text = nil
				break
			}
			text = append(text, one)
		}
		if text == nil {
			t.texts[token] = word
			continue
		}
		t.texts[token] = string(text)
		if b.whole != nil {
			b.whole[string(text)] = token
		}
	}
	return nil
}

// readMerges reads the merges, written as one text or as two.
func (b *bpe) readMerges(f *file) error {
	b.merges = make(map[pair]merge, len(f.Model.Merges))
	for rank, raw := range f.Model.Merges {
		var words []string
		var text string
		if json.Unmarshal(raw, &text) == nil {
			words = strings.Split(text, " ")
		} else if json.Unmarshal(raw, &words) != nil {
			words = nil
		}
		if len(words) != 2 {
			return fmt.Errorf("merge %d is not two tokens", rank)
		}
		left, okLeft := f.Model.Vocab[words[0]]
		right, okRight := f.Model.Vocab[words[1]]
		both, okBoth := f.Model.Vocab[words[0]+words[1]]
		if !okLeft || !okRight || !okBoth {
			return fmt.Errorf("merge %d has tokens that are not in the vocabulary", rank)
		}
		if _, known := b.merges[pair{left, right}]; !known {
			b.merges[pair{left, right}] = merge{rank, both}
		}
	}
	return nil
}

// readAdded reads the tokens that are found in a text before anything else.
func (t *Tokenizer) readAdded(f *file) error {
	var patterns []string
	for _, a := range f.Added {
		_, words := t.model.(*wordPiece)
		if a.SingleWord || a.Normalized && words || a.Content == "" {
			return fmt.Errorf("the added token %.100q has options that are not implemented", a.Content)
		}
		t.addedIDs[a.Content], t.texts[a.ID], t.special[a.ID] = a.ID, a.Content, a.Special
		patterns = append(patterns, a.pattern())
	}
	if len(patterns) == 0 {
		return nil
	}
	added, err := regexp.Compile(strings.Join(patterns, "|"))
	if err != nil {
		return errors.New("its added tokens cannot be searched for")
	}
	added.Longest()
	t.added = added
	return nil
}

// pattern finds the token in a text.
func (a addedToken) pattern() string {
	pattern := regexp.QuoteMeta(a.Content)
	if a.LeftStrip {
		pattern = "[" + spaces + "]*" + pattern
	}
	if a.RightStrip {
		pattern += "[" + spaces + "]*"
	}
	return pattern
}

// readSplit reads how text is cut before it is merged.
func (t *Tokenizer) readSplit(f *file) error {
	if f.PreTokenizer == nil {
		return errors.New("it has no pre_tokenizer")
	}
	if _, words := t.model.(*wordPiece); words {
		if f.PreTokenizer.Type != "BertPreTokenizer" {
			return fmt.Errorf("the pre_tokenizer %q is not implemented as it is used", f.PreTokenizer.Type)
		}
		t.split = []splitter{splitWords}
		return nil
	}
	steps, bytes := []step{*f.PreTokenizer}, false
	if f.PreTokenizer.Type == "Sequence" {
		steps = f.PreTokenizer.PreTokenizers
	}
	for i, s := range steps {
		switch {
		case s.Type == "Digits":
			t.split = append(t.split, splitDigits(s.Individual))
		case s.Type == "Split" && s.Behavior == "Isolated" && !s.Invert && s.Pattern["Regex"] != "":
			split, err := compile(s.Pattern["Regex"])
			if err != nil {
				return err
			}
			t.split = append(t.split, split)
		case s.Type == "ByteLevel" && i == len(steps)-1:
			if bytes = true; s.AddPrefixSpace {
				t.split = append(t.split, prefixSpace)
			}
			if s.UseRegex == nil || *s.UseRegex {
				split, err := compile(gpt2)
				if err != nil {
					return err
				}
				t.split = append(t.split, split)
			}
		default:
			return fmt.Errorf("the pre_tokenizer %q is not implemented as it is used", s.Type)
		}
	}
	if !bytes {
		return errors.New("its pre_tokenizer does not end with ByteLevel")
	}
	return nil
}

// readAround reads the tokens around each text.
func (t *Tokenizer) readAround(f *file) error {
	if f.PostProcessor == nil {
		return nil
	}
	steps := []step{*f.PostProcessor}
	if f.PostProcessor.Type == "Sequence" {
		steps = f.PostProcessor.Processors
	}
	for _, s := range steps {
		switch s.Type {
		case "ByteLevel": // it changes offsets only
		case "TemplateProcessing":
			if err := t.readTemplate(s); err != nil {
				return err
			}
		case "BertProcessing", "RobertaProcessing":
			var before, behind int32
			if json.Unmarshal(s.Before[1], &before) != nil || json.Unmarshal(s.Behind[1], &behind) != nil {
				return fmt.Errorf("the post_processor %q has no tokens", s.Type)
			}
			t.before, t.after = append([]int32{before}, t.before...), append(t.after, behind)
		default:
			return fmt.Errorf("the post_processor %q is not implemented", s.Type)
		}
	}
	return nil
}

// readTemplate reads tokens before and behind the text, which is $A.
func (t *Tokenizer) readTemplate(s step) error {
	var around [2][]int32
	side := 0
	for _, part := range s.Single {
		special, isSpecial := part["SpecialToken"]
		text, isText := part["Sequence"]
		switch {
		case isText && text.ID == "A" && side == 0:
			side = 1
		case isSpecial && len(s.Special[special.ID].IDs) > 0:
			around[side] = append(around[side], s.Special[special.ID].IDs...)
		default:
			return errors.New("its post_processor has a template that is not implemented")
		}
	}
	if side == 0 {
		return errors.New("the template of its post_processor has no text")
	}
	t.before, t.after = slices.Concat(around[0], t.before), append(t.after, around[1]...)
	return nil
}
