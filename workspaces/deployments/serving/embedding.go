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
	modulesName   = "modules.json"
	poolingName   = "1_Pooling/config.json"
	sentencesName = "sentence_bert_config.json"
	promptsName   = "config_sentence_transformers.json"
)

// embeddingFiles are those of them in the directory of the model.
var embeddingFiles = []string{modulesName, sentencesName, promptsName}

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

// firstPosition is the position of the first token: where a family has it behind the number of the
// token that fills texts up.
func (f family) firstPosition(c shard.Config) int64 {
	filler := int64(1) // as RobertaConfig has it
	if !f.filled || has(c, "pad_token_id") && json.Unmarshal(c["pad_token_id"], &filler) != nil {
		return 0
	}
	return filler + 1
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
	switch first := f.firstPosition(m.Config); {
	case first < 0 || first >= m.Facts.MaxContext:
		return models.Say("pad_token_id in config.json is %s, which leaves no position for a token", valueOf(m.Config, "pad_token_id"))
	case 4*m.Facts.MaxContext*m.Facts.Hidden > maxPayload:
		return models.Say("the hidden values of a text take more than %s", models.FormatBytes(maxPayload))
	case m.Facts.Hidden%m.Facts.Heads != 0:
		return models.Say("%d attention heads do not divide the hidden size of %d", m.Facts.Heads, m.Facts.Hidden)
	}
	return models.Text{}
}

// MaxContext is the most tokens of a sequence; 0 if it is not known.
func MaxContext(m shard.Model) int64 {
	return m.Facts.MaxContext - families[m.Facts.Architecture].firstPosition(m.Config)
}

// readEmbedding reads how vectors are made. Without files of sentence-transformers, they are the mean of
// all tokens, as it does without them. The error is a conflict.
func readEmbedding(folder fs.FS, m shard.Model) (e *Embedding, err error) {
	e = &Embedding{Vocabulary: m.Facts.Vocabulary, Pooling: "mean"}
	var modules []struct{ Path, Type string }
	found, err := readJSON(folder, modulesName, &modules)
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
	for name, value := range c {
		mode, isMode := strings.CutPrefix(name, "pooling_mode_")
		switch {
		case !isMode || string(value) != "true":
		case pooling == "" && mode == "cls_token":
			pooling = "cls"
		case pooling == "" && mode == "mean_tokens":
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
	var texts struct {
		Lower bool `json:"do_lower_case"`
	}
	var prompts struct {
		Default string `json:"default_prompt_name"`
	}
	if _, err := readJSON(folder, sentencesName, &texts); err != nil {
		return err
	}
	if _, err := readJSON(folder, promptsName, &prompts); err != nil {
		return err
	}
	if texts.Lower || prompts.Default != "" {
		return notServed(models.Say("do_lower_case in %s and default_prompt_name in %s are not implemented", sentencesName, promptsName))
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
