package placement

import "strings"

// vendor is a word that drivers put before some models and not before others.
const vendor = "nvidia"

// MatchesModel tells whether a device's model is what was asked for: every
// word asked for is a word of the model's name, whatever the case, the order
// and the punctuation. "h100" and "H100-80GB" match "NVIDIA H100 80GB HBM3";
// "h200" does not match "NVIDIA GH200"; "h100|h200" matches either. The
// maker's name is not looked at, and asking for no word matches every model.
func MatchesModel(model, asked string) bool {
	anyModel := true
	for alternative := range strings.SplitSeq(asked, "|") {
		if word, _ := nextWord(alternative); word == "" {
			continue
		}
		if anyModel = false; matchesWords(model, alternative) {
			return true
		}
	}
	return anyModel
}

func matchesWords(model, asked string) bool {
	for {
		var word string
		if word, asked = nextWord(asked); word == "" {
			return true
		}
		if !strings.EqualFold(word, vendor) && !hasWord(model, word) {
			return false
		}
	}
}

func hasWord(text, wanted string) bool {
	for {
		var word string
		if word, text = nextWord(text); word == "" {
			return false
		}
		if strings.EqualFold(word, wanted) {
			return true
		}
	}
}

// nextWord cuts the first run of letters and digits off a text. Bytes beyond
// ASCII count as letters, so that any name has words.
func nextWord(text string) (word, remainder string) {
	start := 0
	for start < len(text) && !inWord(text[start]) {
		start++
	}
	end := start
	for end < len(text) && inWord(text[end]) {
		end++
	}
	return text[start:end], text[end:]
}

func inWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
