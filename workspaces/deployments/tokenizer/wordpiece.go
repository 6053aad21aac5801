package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wordPiece takes the longest token at the beginning of a word, then the longest one that continues it
// (tokenizers, models/wordpiece).
type wordPiece struct {
	first, next map[string]int32 // tokens that begin a word, and that continue it
	unknown     int32            // stands for words that do not consist of tokens
	most        int              // characters of a word
	longest     int              // bytes of a token
}

// maxWord is the most characters of a word for which tokens are looked for.
const maxWord = 1000

func (w *wordPiece) encode(tokens []int32, word string) []int32 {
	n, vocabulary := len(tokens), w.first
	if utf8.RuneCountInString(word) > w.most {
		return append(tokens, w.unknown)
	}
	for word != "" {
		end := len(word)
		if end > w.longest {
			for end = w.longest; end > 0 && !utf8.RuneStart(word[end]); end-- {
			}
		}
		token, ok := vocabulary[word[:end]]
		for !ok && end > 0 {
			_, size := utf8.DecodeLastRuneInString(word[:end])
			end -= size
			token, ok = vocabulary[word[:end]]
		}
		if !ok {
			return append(tokens[:n], w.unknown)
		}
		tokens, word, vocabulary = append(tokens, token), word[end:], w.next
	}
	return tokens
}

// readWords reads the tokens of words. As text, those that begin one have a space before them.
func (t *Tokenizer) readWords(f *file) error {
	m := f.Model
	unknown, known := m.Vocab[m.Unknown]
	if !known || m.Prefix == "" || m.MaxWord < 1 || m.MaxWord > maxWord {
		return fmt.Errorf("its model has no unk_token, continuing_subword_prefix or max_input_chars_per_word, from 1 to %d", maxWord)
	}
	w := &wordPiece{first: map[string]int32{}, next: map[string]int32{}, unknown: unknown, most: m.MaxWord}
	for word, token := range m.Vocab {
		rest, continues := strings.CutPrefix(word, m.Prefix)
		if word == "" || rest == "" {
			continue // no word has it
		}
		w.longest = max(w.longest, len(word))
		w.first[word], t.texts[token] = token, " "+word // a word can also begin like what continues one
		if continues {
			w.next[rest], t.texts[token] = token, rest
		}
	}
	t.model = w
	return nil
}

// cleaned is the normalizer of BERT (tokenizers, normalizers/bert.rs).
func (s step) cleaned(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch control := !strings.ContainsRune("\t\n\r", r) && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co); {
		case s.Clean && (control || r == utf8.RuneError):
		case s.Clean && unicode.IsSpace(r):
			b.WriteByte(' ')
		case s.Chinese && isIdeograph(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	text = b.String()
	if s.Accents == nil && s.Lowercase || s.Accents != nil && *s.Accents {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if s.Lowercase {
		text = strings.ToLower(strings.ReplaceAll(text, "\u0130", "i\u0307"))
	}
	return text
}

// isIdeograph reports whether a character is a word by itself: those of the blocks of CJK ideographs.
func isIdeograph(r rune) bool {
	for _, block := range [][2]rune{{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
		{0x2b920, 0x2ceaf}, {0xf900, 0xfaff}, {0x2f800, 0x2fa1f}} {
		if block[0] <= r && r <= block[1] {
			return true
		}
	}
	return false
}

// splitWords cuts a text at spaces, which it leaves out, and around each sign of punctuation.
func splitWords(text string) (words []string) {
	from := 0
	for i, r := range text {
		space := unicode.IsSpace(r)
		if !space && !unicode.IsPunct(r) && !(r < utf8.RuneSelf && unicode.IsSymbol(r)) {
			continue
		}
		if from < i {
			words = append(words, text[from:i])
		}
		if from = i + utf8.RuneLen(r); !space {
			words = append(words, text[i:from])
		}
	}
	if from < len(text) {
		words = append(words, text[from:])
	}
	return words
}
