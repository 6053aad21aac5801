package serving

import (
	"encoding/json"
	"io/fs"
	"strings"

	"weir/models"
	"weir/workspaces/shard"
)

// Embedding is how a text encoder makes one vector of a text.
type Embedding struct {
	Vocabulary int64  `json:"vocabulary"` // number of tokens
	Pooling    string `json:"pooling"`    // cls: the first token stands for the text; mean: the mean of all
	Normalize  bool   `json:"normalize"`  // to the length 1
}

// What sentence-transformers keeps beside a model, which says how vectors are made of its hidden states
// (sentence-transformers, sentence_transformers/models).
const (
	modulesName = "modules.json"
	poolingName = "1_Pooling/config.json"
	promptsName = "config_sentence_transformers.json"
)

// sentencesNames are what the same file is called for different families.
var sentencesNames = []string{"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_xlm-roberta_config.json"}

// embeddingFiles are those of them in the directory of the model.
var embeddingFiles = append([]string{modulesName, promptsName}, sentencesNames...)

// encoderTensors are the tensors of a text encoder.
func encoderTensors(_ family, m shard.Model) map[string][]int64 {
	h, inner := m.Facts.Hidden, m.Facts.Intermediate
	needed := map[string][]int64{"embeddings.word_embeddings.weight": {m.Facts.Vocabulary, h},
		"embeddings.position_embeddings.weight":   {m.Facts.MaxContext, h},
		"embeddings.token_type_embeddings.weight": {typesIn(m.Config), h}}
	addNorm(needed, "embeddings.LayerNorm", h)
	layer := map[string][]int64{}
	addEncoderLayer(layer, "attention.self.", h, inner)
	addNorm(layer, "attention.output.LayerNorm", h)
	addNorm(layer, "output.LayerNorm", h)
	addLayers(needed, m, "encoder.layer", layer)
	return needed
}

// typesIn is how many types of tokens there are; the default is that of BertConfig.
func typesIn(c shard.Config) int64 {
	if !has(c, "type_vocab_size") {
		return 2
	}
	return sizeIn(c, "type_vocab_size")
}

// filler is the token that fills texts up, where a family numbers positions behind it; nil: from 0 on.
func (f family) filler(c shard.Config) *int64 {
	if !f.filled {
		return nil
	}
	n := int64(1) // as RobertaConfig has it
	if has(c, "pad_token_id") && json.Unmarshal(c["pad_token_id"], &n) != nil {
		n = -1
	}
	return &n
}

// checkEncoderSizes refuses sizes of a text encoder that do not fit each other.
func checkEncoderSizes(f family, m shard.Model) models.Text {
	why := checkSizes(m, "hidden_size", "num_attention_heads", "vocab_size", "num_hidden_layers", "intermediate_size",
		"max_position_embeddings")
	if !why.Empty() {
		return why
	}
	if why := checkPositive(m, "layer_norm_eps"); !why.Empty() {
		return why
	}
	switch filler := f.filler(m.Config); {
	case filler != nil && (*filler < 0 || *filler >= m.Facts.MaxContext-1):
		return models.Say("pad_token_id in config.json is %s, which leaves no position for a token", valueOf(m.Config, "pad_token_id"))
	case 4*m.Facts.MaxContext*m.Facts.Hidden > maxPayload:
		return models.Say("the hidden values of a text take more than %s", models.FormatBytes(maxPayload))
	case m.Facts.Hidden%m.Facts.Heads != 0:
		return models.Say("%d attention heads do not divide the hidden size of %d", m.Facts.Heads, m.Facts.Hidden)
	}
	return models.Text{}
}

// readEmbedding reads how vectors are made. Without files of sentence-transformers, they are the mean of
// all tokens, as it does without them. The error is a conflict.
func readEmbedding(folder fs.FS, m shard.Model) (e *Embedding, err error) {
	e = &Embedding{Vocabulary: m.Facts.Vocabulary, Pooling: "mean"}
	var modules []struct{ Path, Type string }
	found, err := readJSON(folder, modulesName, &modules)
	if err == nil {
		err = checkTokenizers(folder)
	}
	if err != nil || !found {
		return e, err
	}
	for i, module := range modules {
		switch kind := module.Type[strings.LastIndex(module.Type, ".")+1:]; {
		case kind == "Transformer" && i == 0 && module.Path == "", kind == "Pooling" && i == 1 && module.Path+"/config.json" == poolingName:
		case kind == "Normalize" && i == 2:
			e.Normalize = true
		default:
			return nil, notServed(models.Say("%s has the module %s, which is not implemented at this place",
				modulesName, models.Excerpt(module.Type+" "+module.Path)))
		}
	}
	if len(modules) < 2 {
		return nil, notServed(models.Say("%s has no Pooling", modulesName))
	}
	if e.Pooling, err = readPooling(folder, m.Facts.Hidden); err != nil {
		return nil, err
	}
	return e, checkSentences(folder)
}

// readPooling is what stands for a text.
func readPooling(folder fs.FS, hidden int64) (pooling string, err error) {
	var c shard.Config
	found, err := readJSON(folder, poolingName, &c)
	if err != nil {
		return "", err
	}
	if !found {
		return "", notServed(models.Say("the file %s is missing", poolingName))
	}
	modes := map[string]string{"pooling_mode_mean_tokens": "true"} // as it is unless something else is stated
	for name, value := range c {
		modes[name] = string(value)
	}
	if has(c, "pooling_mode") { // which takes the place of all others
		var mode string
		_ = json.Unmarshal(c["pooling_mode"], &mode) // what is no text is none that is implemented
		modes = map[string]string{"pooling_mode_" + mode: "true"}
	}
	for name, value := range modes {
		mode, isMode := strings.CutPrefix(name, "pooling_mode_")
		switch {
		case !isMode || value != "true":
		case pooling == "" && (mode == "cls_token" || mode == "cls"):
			pooling = "cls"
		case pooling == "" && (mode == "mean_tokens" || mode == "mean"):
			pooling = "mean"
		default:
			return "", notServed(models.Say("%s has another result than either the first token or the mean", poolingName))
		}
	}
	if width := sizeIn(c, "word_embedding_dimension"); pooling == "" || width != hidden {
		return "", notServed(models.Say("%s does not state one result, of %d values", poolingName, hidden))
	}
	return pooling, nil
}

// checkSentences refuses what is done with texts before they become tokens.
func checkSentences(folder fs.FS) error {
	for _, name := range sentencesNames {
		var texts struct {
			Lower bool `json:"do_lower_case"`
		}
		if _, err := readJSON(folder, name, &texts); err != nil {
			return err
		}
		if texts.Lower {
			return notServed(models.Say("%s in %s is not implemented", "do_lower_case", name))
		}
	}
	var prompts struct {
		Default string `json:"default_prompt_name"`
	}
	if _, err := readJSON(folder, promptsName, &prompts); err != nil {
		return err
	}
	if prompts.Default != "" {
		return notServed(models.Say("%s in %s is not implemented", "default_prompt_name", promptsName))
	}
	return nil
}

// checkTokenizers refuses a model whose texts transformers would change in another way than tokenizer.json
// says: what it is told by tokenizer_config.json takes precedence.
func checkTokenizers(folder fs.FS) error {
	type options struct {
		Lower   *bool `json:"do_lower_case"`
		Accents *bool `json:"strip_accents"`
		Chinese *bool `json:"tokenize_chinese_chars"`
		Space   *bool `json:"add_prefix_space"`
	}
	var says options
	var own struct {
		Normalizer struct {
			Lower   *bool `json:"lowercase"`
			Accents *bool `json:"strip_accents"`
			Chinese *bool `json:"handle_chinese_chars"`
		}
		Split struct {
			Space *bool `json:"add_prefix_space"`
		} `json:"pre_tokenizer"`
	}
	for name, into := range map[string]any{tokenizerConfigName: &says, tokenizerName: &own} {
		content, err := shard.ReadSmall(folder, name, maxTokenizerBytes)
		if err != nil {
			return err
		}
		if content != nil && json.Unmarshal(content, into) != nil {
			return nil // it is not used, and the reason is stated then
		}
	}
	for name, pair := range map[string][2]*bool{"do_lower_case": {says.Lower, own.Normalizer.Lower},
		"strip_accents":          {says.Accents, own.Normalizer.Accents},
		"tokenize_chinese_chars": {says.Chinese, own.Normalizer.Chinese}, "add_prefix_space": {says.Space, own.Split.Space}} {
		if pair[0] != nil && pair[1] != nil && *pair[0] != *pair[1] {
			return notServed(models.Say("%s in %s is not what %s says", name, tokenizerConfigName, tokenizerName))
		}
	}
	return nil
}

// readJSON reads a small file; false if it is missing.
func readJSON(folder fs.FS, name string, into any) (found bool, err error) {
	content, err := shard.ReadSmall(folder, name, maxGenerationBytes)
	if content == nil || err != nil {
		return false, err
	}
	if json.Unmarshal(content, into) != nil {
		return false, notServed(models.Say("%s does not have the expected form", name))
	}
	return true, nil
}
