package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// bert is a tokenizer.json like that of BERT, with the vocabulary of transformers'
// tests/models/bert/test_tokenization_bert.py (Apache-2.0), and more words.
func bert(change map[string]any, more ...string) map[string]any {
	vocab := map[string]int32{}
	for i, word := range append([]string{"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "want", "##want", "##ed", "wa", "un", "runn", "##ing",
		",", "low", "lowest"}, more...) {
		vocab[word] = int32(i)
	}
	added := []any{}
	for i, word := range []string{"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"} {
		added = append(added, map[string]any{"id": i, "content": word, "special": true, "normalized": false})
	}
	all := map[string]any{"model.type": "WordPiece", "model.vocab": vocab, "model.unk_token": "[UNK]", "model.continuing_subword_prefix": "##",
		"model.max_input_chars_per_word": 100, "model.merges": nil, "added_tokens": added,
		"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"}, "decoder": map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"post_processor": map[string]any{"type": "BertProcessing", "sep": []any{"[SEP]", 2}, "cls": []any{"[CLS]", 1}}}
	for name, value := range change {
		all[name] = value
	}
	return all
}

// The first four are vectors of the test named above.
func TestWordPieces(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"UNwant\u00E9d,running", []int32{9, 6, 7, 12, 10, 11}}, {"unwanted running", []int32{9, 6, 7, 10, 11}},
		{"unwantedX running", []int32{0, 10, 11}}, {"", nil},
		{" \tUN\x00wa\u00ADnted\u2003low\u3000lowest\n", []int32{9, 6, 7, 13, 14}}, {"low[MASK]low", []int32{13, 4, 13}},
		{"low\u535Alow\u63A8", []int32{13, 15, 13, 0}}, {"low,\u3002$low", []int32{13, 12, 0, 16, 13}},
		{strings.Repeat("wa", 50), append([]int32{8}, slices.Repeat([]int32{17}, 49)...)}, {strings.Repeat("wa", 50) + "n", []int32{0}},
	} {
		tok := read(t, bert(nil, "\u535A", "$", "##wa"))
		want := slices.Concat([]int32{1}, c.want, []int32{2})
		if got := tok.Encode(c.text); !slices.Equal(got, want) {
			t.Errorf("%.40q: got %v, want %v", c.text, got, want)
		}
	}
}

// A long word is looked up by what a token can be, also between characters of several bytes, and a text that
// is empty when it is normalized has no tokens, by pieces of words and by bytes.
func TestLongAndEmptyWords(t *testing.T) {
	tok := read(t, bert(map[string]any{"model.max_input_chars_per_word": 1000}, "\u00e9\u00e9", "##\u00e9", "##\u00e9\u00e9\u00e9", "\u00e9"))
	tok.normalize = func(text string) string { return text }
	if got, want := tok.EncodeWhole(strings.Repeat("\u00e9", 1000)), 1+333-1; len(got) < want || got[0] != 15 || got[1] != 17 {
		t.Errorf("%d tokens: %v", len(got), got[:3])
	}
	normalizer := bert(nil)["normalizer"]
	for _, tok := range []*Tokenizer{tok, read(t, bert(nil)), read(t, map[string]any{"normalizer": normalizer,
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "use_regex": false}})} {
		tok.normalize = step{Clean: true}.cleaned
		if got := tok.EncodeWhole("\u200b"); len(got) != 0 {
			t.Errorf("it has the tokens %v", got)
		}
	}
}

// Accents and upper case are kept as the normalizer says.
func TestCleaned(t *testing.T) {
	kept := map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": false, "strip_accents": false, "lowercase": true}
	cased := map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": false}
	for _, c := range []struct {
		normalizer map[string]any
		text, want string
	}{
		{kept, "H\u00C9llo\u63A8 \u0130", "h\u00E9llo\u63A8 i\u0307"}, {kept, "a\fb\vc\u0085d\te\u00A0f\u200Bg\U0003FFFDh", "abcd e fg\U0003FFFDh"}, {cased, "H\u00E9\rllo\u63A8", "H\u00E9 llo \u63A8 "},
		{bert(nil)["normalizer"].(map[string]any), "H\u00E9llo \u0130", "hello i"},
	} {
		if got := read(t, bert(map[string]any{"normalizer": c.normalizer})).normalize(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// What is not as in BERT is refused.
func TestWordsRefused(t *testing.T) {
	for want, change := range map[string]map[string]any{
		"no unk_token":  {"model.unk_token": "[NONE]"},
		"pre_tokenizer": {"pre_tokenizer": map[string]any{"type": "Whitespace"}},
		"normalizer":    {"normalizer": map[string]any{"type": "Precompiled"}},
		"has options":   {"added_tokens": []any{map[string]any{"id": 1, "content": "x", "normalized": true}}},
		"no tokens":     {"post_processor": map[string]any{"type": "BertProcessing"}},
		"or max_input":  {"model.max_input_chars_per_word": 0},
		"from 1 to":     {"model.max_input_chars_per_word": 1001},
	} {
		if _, err := Read(described(t, bert(change)), 1000); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Read(described(t, bert(nil)), 10); err == nil {
		t.Error("tokens that the model does not have")
	}
}

// The tokens around a text of RoBERTa, and one that takes the spaces before it.
func TestRoberta(t *testing.T) {
	tok := read(t, map[string]any{"post_processor": map[string]any{"type": "RobertaProcessing", "sep": []any{"</s>", 300}, "cls": []any{"<s>", 301}},
		"added_tokens": []any{map[string]any{"id": 302, "content": "<mask>", "special": true, "lstrip": true}}})
	if got, want := tok.Encode("a \u2003<mask> b"), []int32{301, 'a', 302, tok.Encode(" ")[1], 'b', 300}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Every text has tokens of the vocabulary, and words are not lost: without unknown ones, they are the text
// in lower case without spaces.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "low, lowest running", "\u0130\u535A\x00", "##ing[CLS]", "\xff", strings.Repeat("a", 101)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tok := read(t, bert(nil))
		tokens, back := tok.Encode(text), ""
		for _, token := range tokens {
			if token < 0 || token > 14 {
				t.Fatalf("%q has the token %d", text, token)
			}
			back += strings.TrimSpace(tok.Bytes(token))
		}
		if want := strings.Join(strings.Fields(tok.normalize(text)), ""); !slices.ContainsFunc(tokens[1:len(tokens)-1], tok.isSpecial) && back != want {
			t.Fatalf("%q became %q, want %q", text, back, want)
		}
	})
}

func (t *Tokenizer) isSpecial(token int32) bool { return t.special[token] }
