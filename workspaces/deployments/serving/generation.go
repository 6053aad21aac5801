package serving

import (
	"encoding/json"
	"io/fs"
	"path/filepath"

	"weir/models"
	"weir/workspaces/deployments/tokenizer"
	"weir/workspaces/shard"
)

const (
	storedGenerationName = "generation.json" // in the directory of a deployment
	maxEnd               = 1000              // tokens that end a text
)

// Generation is what computing with a model needs besides its parts. It is kept with a
// deployment, so that later changes of the model's files do not change what is served.
type Generation struct {
	End  []int32 `json:"end"`            // tokens that end a text
	Chat *Chat   `json:"chat,omitempty"` // nil: the model has no template for conversations

	Image     *Image     `json:"image,omitempty"`     // what the model classifies; nil: something else
	Embedding *Embedding `json:"embedding,omitempty"` // how the model embeds texts; nil: it does something else

	Text   *tokenizer.Tokenizer `json:"-"` // nil: the model has none, or none that can be used
	NoText string               `json:"-"` // why not; empty: it has none
}

// Refuse returns the reason for which the worker does not serve a model as a conflict; nil if
// it serves it. The worker would compute other models than these wrongly.
func Refuse(folder fs.FS, m shard.Model) error {
	_, err := readGeneration(folder, m)
	return err
}

// readGeneration reads it from the folder of a model that is served. The tokens that end a text are those of
// generation_config.json or, if that has none, of config.json. The error is a conflict.
func readGeneration(folder fs.FS, m shard.Model) (g Generation, err error) {
	if why := Check(m); !why.Empty() {
		return g, notServed(why)
	}
	switch TaskOf(m) {
	case models.TaskImageClassification:
		return Generation{Image: new(imageOf(m.Config))}, nil
	case models.TaskTextEmbedding:
		g.Embedding, err = readEmbedding(folder, m)
		return g, err
	}
	content, err := shard.ReadSmall(folder, generationName, maxGenerationBytes)
	if err != nil {
		return g, err
	}
	own := shard.Config{}
	if content != nil && json.Unmarshal(content, &own) != nil {
		return g, models.Conflict("The file %s is not a JSON object.", generationName)
	}
	if g.End, err = endOf(own, generationName, m.Facts.Vocabulary); err == nil && g.End == nil {
		g.End, err = endOf(m.Config, configName, m.Facts.Vocabulary)
	}
	if err != nil {
		return g, err
	}
	g.Chat, err = readChat(folder)
	return g, err
}

// endOf reads eos_token_id, which is a number or a list of them; nil if there is none.
func endOf(c shard.Config, file string, vocabulary int64) (list []int32, err error) {
	raw := c["eos_token_id"]
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one int32
	if json.Unmarshal(raw, &one) == nil {
		list = []int32{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) > maxEnd {
		return nil, models.Conflict("eos_token_id in %s is not a token number or a list of them.", file)
	}
	for _, token := range list {
		if token < 0 || int64(token) >= vocabulary {
			return nil, models.Conflict("eos_token_id in %s is %d; this model has the tokens 0 to %d.", file, int64(token), vocabulary-1)
		}
	}
	return list, nil
}

// keep writes what belongs to the deployment in a directory, with the tokenizer of the folder
// as it is: whether it can be used is seen when it is read.
func (g Generation) keep(dir string, folder fs.FS) error {
	content, err := shard.ReadSmall(folder, tokenizerName, maxTokenizerBytes)
	if err == nil && content != nil {
		err = writeSynced(filepath.Join(dir, tokenizerName), content, 0o600)
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, storedGenerationName), text, 0o600)
}
