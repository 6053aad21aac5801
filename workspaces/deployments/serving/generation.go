package serving

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"weir/models"
	"weir/workspaces/deployments/tokenizer"
	"weir/workspaces/shard"
)

const (
	configName           = "config.json"
	generationName       = "generation_config.json"
	maxGenerationBytes   = 1 << 20
	storedGenerationName = "generation.json" // in the directory of a deployment
	maxEnd               = 1000              // tokens that end a text
	tokenizerName        = "tokenizer.json"
	maxTokenizerBytes    = 64 << 20
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

// maxKept bounds what was read of deployments: each may have a tokenizer of many megabytes.
const maxKept = 32

// kept is what was kept of a deployment, when it was read.
type kept struct {
	mu   sync.Mutex // locked while it is read, which can take long
	read bool
	Generation
}

// keptOf is what was kept of a deployment, perhaps not read yet.
func (s *Store) keptOf(deployment int64) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[deployment]; k != nil {
		return k
	}
	if s.kept == nil {
		s.kept = map[int64]*kept{}
	}
	for other := range s.kept { // of deployments that another server has stopped, too
		if len(s.kept) >= maxKept {
			delete(s.kept, other)
		}
	}
	k := &kept{}
	s.kept[deployment] = k
	return k
}

// Generation is what was kept of a deployment.
func (s *Store) Generation(d models.Deployment) (Generation, error) {
	k := s.keptOf(d.ID)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read {
		return k.Generation, nil
	}
	g, err := s.readKept(s.directory(d), d.Vocabulary)
	if errors.Is(err, fs.ErrNotExist) {
		return Generation{}, nil // not written yet, or by an earlier version, which kept nothing
	}
	if err == nil {
		k.Generation, k.read = g, true
	}
	return g, err
}

func (s *Store) readKept(dir string, vocabulary int64) (g Generation, err error) {
	text, err := os.ReadFile(filepath.Join(dir, storedGenerationName))
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil {
		return g, err
	}
	content, err := os.ReadFile(filepath.Join(dir, tokenizerName))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	if g.Embedding != nil {
		vocabulary = g.Embedding.Vocabulary
	}
	used, refused := tokenizer.Read(content, vocabulary)
	if refused != nil {
		g.NoText = refused.Error()
	}
	g.Text = used
	return g, nil
}
