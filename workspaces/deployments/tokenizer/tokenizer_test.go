package tokenizer

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// described is a tokenizer.json in a test: the bytes, and the tokens after them.
func described(t *testing.T, change map[string]any, merges ...string) []byte {
	t.Helper()
	vocab := map[string]int32{}
	for b, symbol := range byteSymbols() {
		vocab[string(symbol)] = int32(b)
	}
	for i, m := range merges {
		vocab[strings.ReplaceAll(m, " ", "")] = int32(256 + i)
	}
	model := map[string]any{"type": "BPE", "vocab": vocab, "merges": merges, "dropout": nil, "unk_token": nil, "byte_fallback": false}
	f := map[string]any{"version": "1.0", "normalizer": nil, "model": model, "added_tokens": []any{}, "decoder": map[string]any{"type": "ByteLevel"},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "post_processor": nil}
	for name, value := range change {
		if of, ok := strings.CutPrefix(name, "model."); ok {
			model[of] = value
		} else {
			f[name] = value
		}
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(t *testing.T, change map[string]any, merges ...string) *Tokenizer {
	t.Helper()
	tok, err := Read(described(t, change, merges...), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// words are the texts of tokens, with the space as Ġ, as vocabularies write it.
func words(tok *Tokenizer, tokens []int32) (list []string) {
	for _, token := range tokens {
		list = append(list, strings.ReplaceAll(tok.texts[token], " ", "Ġ"))
	}
	return list
}

// decode returns the text of tokens.
func decode(tok *Tokenizer, tokens []int32) (text string) {
	for _, token := range tokens {
		text += tok.Bytes(token)
	}
	return text
}

// Text is composed before it is cut, and added tokens are found in it as it is.
func TestNormalized(t *testing.T) {
	nfc := map[string]any{"normalizer": map[string]any{"type": "NFC"},
		"added_tokens": []any{map[string]any{"id": 300, "content": "<e\u0301>", "special": true, "normalized": false}}}
	tok := read(t, nfc)
	const apart, composed = "caf" + "e\u0301", "caf\u00e9"
	if got, want := tok.Encode(apart), tok.Encode(composed); !slices.Equal(got, want) || len(want) != 5 {
		t.Errorf("%v, not %v", got, want)
	}
	if got := tok.Encode("<e\u0301>" + apart); len(got) != 6 || got[0] != 300 {
		t.Errorf("%v", got)
	}
	if plain := read(t, nil); slices.Equal(plain.Encode(apart), plain.Encode(composed)) {
		t.Error("without a normalizer, it is composed, too")
	}
}

// The vectors of transformers' tests/models/gpt2/test_tokenization_gpt2.py (Apache-2.0): its
// merges, and "lower newer" with a space before.
func TestMerges(t *testing.T) {
	merges := []string{"Ġ l", "Ġl o", "Ġlo w", "e r"}
	tok := read(t, map[string]any{"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": true}}, merges...)
	if got := words(tok, tok.Encode("lower newer")); !slices.Equal(got, []string{"Ġlow", "er", "Ġ", "n", "e", "w", "er"}) {
		t.Errorf("%q", got)
	}
	pairs := read(t, map[string]any{"model.merges": [][]string{{"Ġ", "l"}, {"Ġl", "o"}, {"Ġlo", "w"}, {"e", "r"}}}, merges...)
	if got := words(pairs, pairs.Encode(" lower")); !slices.Equal(got, []string{"Ġlow", "er"}) {
		t.Errorf("%q", got)
	}
	// The example of byte pair encoding in Wikipedia: aaabdaaabac becomes XdXac with Z = aa,
	// Y = ab and X = ZY.
	tok = read(t, nil, "a a", "a b", "aa ab")
	if got := words(tok, tok.Encode("aaabdaaabac")); !slices.Equal(got, []string{"aaab", "d", "aaab", "a", "c"}) {
		t.Errorf("%q", got)
	}
}

const llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// The pieces of GPT-2's pattern are those that its authors and others have published; those of
// Llama 3's follow from its pattern by hand.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []string
	}{
		{gpt2, "Hello've world123 how's are you!!!?", []string{"Hello", "'ve", " world", "123", " how", "'s", " are", " you", "!!!?"}}, // minbpe's lecture
		{gpt2, "Hello've     you     ", []string{"Hello", "'ve", "    ", " you", "     "}},
		{gpt2, "a\n\n b\t", []string{"a", "\n\n", " b", "\t"}},
		{gpt2, "naïve 東京\u3000x", []string{"naïve", " 東京", "\u3000", "x"}},
		{gpt2, "x\u00a0\u00a0y", []string{"x", "\u00a0", "\u00a0", "y"}},
		{llama3, "I'LL pay $12345.60", []string{"I", "'LL", " pay", " $", "123", "45", ".", "60"}},
		{llama3, "if x:\n\n    return (y)", []string{"if", " x", ":\n\n", "   ", " return", " (", "y", ")"}},
		{llama3, "a  \n  b", []string{"a", "  \n", " ", " b"}},
		{llama3, "", nil},
	} {
		split, err := compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := split(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
	if got := splitDigits(true)("a12 3"); !slices.Equal(got, []string{"a", "1", "2", " ", "3"}) {
		t.Errorf("%q", got)
	}
	if got := splitDigits(false)("a12 3"); !slices.Equal(got, []string{"a", "12", " ", "3"}) {
		t.Errorf("%q", got)
	}
}

// Added tokens are found first, the longest one, and are no text if they are special; the
// template puts tokens around.
func TestAddedTokens(t *testing.T) {
	tok := read(t, map[string]any{
		"added_tokens": []map[string]any{{"id": 300, "content": "<s>", "special": true}, {"id": 301, "content": "<s>x", "special": false}},
		"post_processor": map[string]any{"type": "Sequence", "processors": []any{map[string]any{"type": "ByteLevel"}, map[string]any{
			"type": "TemplateProcessing", "special_tokens": map[string]any{"<s>": map[string]any{"id": "<s>", "ids": []int{300}}},
			"single": []any{map[string]any{"SpecialToken": map[string]any{"id": "<s>", "type_id": 0}},
				map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}}}}},
	})
	got := tok.Encode("a<s>b<s>xc")
	if want := []int32{300, 'a', 300, 'b', 301, 'c'}; len(got) != len(want) || got[0] != 300 || got[2] != 300 || got[4] != 301 {
		t.Errorf("got %v", got)
	}
	if text := decode(tok, got); text != "ab<s>xc" {
		t.Errorf("got %q", text)
	}
	if empty := tok.Encode(""); !slices.Equal(empty, []int32{300}) {
		t.Errorf("got %v", empty)
	}
}

// Whole pieces that are tokens are not merged where the file says so.
func TestIgnoredMerges(t *testing.T) {
	for ignore, want := range map[bool]int{true: 1, false: 2} {
		tok := read(t, map[string]any{"model.ignore_merges": ignore}, "a b", "c d")
		tok.texts[400] = "abcd"
		if ignore {
			tok.model.(*bpe).whole["abcd"] = 400
		}
		if got := tok.Encode("abcd"); len(got) != want {
			t.Errorf("%v: got %v", ignore, got)
		}
	}
}

// What is not implemented is refused with the reason.
func TestRefused(t *testing.T) {
	byteLevel := map[string]any{"type": "ByteLevel"}
	for reason, change := range map[string]map[string]any{
		"the model \"Unigram\"":                 {"model.type": "Unigram"},
		"byte_fallback":                         {"model.byte_fallback": true},
		`the normalizer "NFKC"`:                 {"normalizer": map[string]any{"type": "NFKC"}},
		"its decoder":                           {"decoder": map[string]any{"type": "Fuse"}},
		"no pre_tokenizer":                      {"pre_tokenizer": nil},
		"the pre_tokenizer \"Metaspace\"":       {"pre_tokenizer": map[string]any{"type": "Metaspace"}},
		"does not end with ByteLevel":           {"pre_tokenizer": map[string]any{"type": "Digits"}},
		"the post_processor \"BertProcessing\"": {"post_processor": map[string]any{"type": "BertProcessing"}},
		"a template that is not implemented":    {"post_processor": map[string]any{"type": "TemplateProcessing", "single": []any{map[string]any{"Sequence": map[string]any{"id": "B"}}}}},
		"the template of its post_processor":    {"post_processor": map[string]any{"type": "TemplateProcessing"}},
		"merge 0 is not two tokens":             {"model.merges": []string{"a"}},
		"merge 0 has tokens that are not":       {"model.merges": []string{"xx y"}},
		"has options that are not implemented":  {"added_tokens": []map[string]any{{"id": 300, "content": "<m>", "single_word": true}}},
		"it has a token 5000":                   {"added_tokens": []map[string]any{{"id": 5000, "content": "<m>"}}},
		"it has no token for the byte 0":        {"model.vocab": map[string]int{"a": 1}},
		"does not end with": {"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `\p{L}+`}, "behavior": "Isolated"}, byteLevel}}},
		`the pattern has \d`: {"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `\d+` + lastSpace}, "behavior": "Isolated"}, byteLevel}}},
		"the pattern cannot be used": {"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `(?=a)` + lastSpace}, "behavior": "Isolated"}, byteLevel}}},
	} {
		if _, err := Read(described(t, change), 1000); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %s", err, reason)
		}
	}
	if _, err := Read([]byte("[]"), 1000); err == nil {
		t.Error("a list is a tokenizer")
	}
}

// Long pieces take time in proportion to their length, not to its square.
func TestLongPiece(t *testing.T) {
	tok := read(t, nil, "a a", "aa aa", "aaaa aaaa")
	if got := tok.Encode(strings.Repeat("a", 1<<20)); len(got) != 1<<17 {
		t.Errorf("%d tokens", len(got))
	}
}

// FuzzEncode decodes what was encoded: it is the same text.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{"", "Hello've world123", "  a\n\n b\t", "naïve 東京", "'S's", "\xff\xfe"} {
		f.Add(text)
	}
	merges := []string{"l l", "Ġ w", "h e", "o r", "Ġw or"}
	f.Fuzz(func(t *testing.T, text string) {
		for _, pattern := range []string{gpt2, llama3} {
			tok := read(t, map[string]any{"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
				map[string]any{"type": "Split", "pattern": map[string]any{"Regex": pattern}, "behavior": "Isolated"},
				map[string]any{"type": "ByteLevel", "use_regex": false}}}}, merges...)
			if got := decode(tok, tok.Encode(text)); got != text {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}

// Every byte has a symbol of its own, and those of the characters that can be seen are these.
func TestByteSymbols(t *testing.T) {
	seen := map[rune]int{}
	for b, symbol := range byteSymbols() {
		seen[symbol] = b
	}
	if len(seen) != 256 || seen['Ġ'] != ' ' || seen['Ċ'] != '\n' || seen['a'] != 'a' {
		t.Errorf("%v", slices.Collect(maps.Keys(seen)))
	}
}

// The file that other tests use has the bytes of a text as its tokens.
func TestTokensAreBytes(t *testing.T) {
	content, err := os.ReadFile("testdata/bytes.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Read(content, 256)
	if err != nil {
		t.Fatal(err)
	}
	for b, token := range tok.EncodeWhole("\x00 aé\n") {
		if want := "\x00 aé\n"[b]; token != int32(want) || tok.Bytes(token) != string([]byte{want}) {
			t.Errorf("byte %d is token %d", want, token)
		}
	}
}
