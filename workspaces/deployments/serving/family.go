package serving

import (
	"weir/models"
	"weir/workspaces/shard"
)

// family is models that the worker computes, by what they differ in.
type family struct {
	modelType string
	task      models.ModelTask
	checks    []func(family, shard.Model) models.Text // in this order
	tensors   func(family, shard.Model) map[string][]int64

	bias    bool     // of decoders: queries, keys and values have a bias
	norm    bool     // of decoders: the queries and keys of each head are normalized
	experts *experts // of decoders: in the place of each feed-forward network
	filled  bool     // of text encoders: positions begin behind the number of the token that fills texts up
	stated  []string // entries of config.json whose absence means something else than null
	ignored []string // entries of config.json that change nothing
}

// experts are those of a layer, by names in files and config.json.
type experts struct {
	router, inner  string // what routes tokens to them, and where they are
	gate, up, down string
	size           string // entry of config.json
}
