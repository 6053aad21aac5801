package serving

import (
	"cmp"
	"encoding/json"
	"strconv"

	"weir/models"
	"weir/workspaces/shard"
)

// Image is what a vision transformer classifies.
type Image struct {
	Channels int64    `json:"channels"`
	Size     int64    `json:"size"`   // height and width, in pixels
	Labels   []string `json:"labels"` // of the classes
}

// Values is how many numbers an image has.
func (i Image) Values() int64 { return i.Channels * i.Size * i.Size }

const (
	maxImageSize   = 4096
	maxImageBytes  = 15 << 20 // a request with one can be sent
	maxPatches     = 4096
	maxClasses     = 100_000
	defaultClasses = 2 // as PretrainedConfig of transformers has it
)

// imageOf is what a model classifies.
func imageOf(c shard.Config) Image {
	v := Image{Channels: cmp.Or(sizeIn(c, "num_channels"), 3), Size: sizeIn(c, "image_size")}
	var names map[string]string
	_ = json.Unmarshal(c["id2label"], &names) // without names, classes have their numbers
	n := cmp.Or(len(names), int(sizeIn(c, "num_labels")), defaultClasses)
	for i := range min(n, maxClasses+1) {
		v.Labels = append(v.Labels, models.Excerpt(cmp.Or(names[strconv.Itoa(i)], strconv.Itoa(i))))
	}
	return v
}

// checkVisionSizes refuses sizes of a vision transformer that do not fit each other.
func checkVisionSizes(_ family, m shard.Model) models.Text {
	why := checkSizes(m, "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "image_size", "patch_size")
	if !why.Empty() {
		return why
	}
	if why := checkPositive(m, "layer_norm_eps"); !why.Empty() {
		return why
	}
	size, patch, image := sizeIn(m.Config, "image_size"), sizeIn(m.Config, "patch_size"), imageOf(m.Config)
	switch {
	case size%patch != 0 || size > maxImageSize || (size/patch)*(size/patch) > maxPatches:
		return models.Say("image_size in config.json is %d, which must be at most %d and a multiple of patch_size, with at most %d patches",
			size, int64(maxImageSize), int64(maxPatches))
	case 4*image.Values() > maxImageBytes:
		return models.Say("the values of an image take more than %s", models.FormatBytes(maxImageBytes))
	case 4*m.Facts.MaxContext*m.Facts.Hidden > maxPayload:
		return models.Say("the hidden values of an image take more than %s", models.FormatBytes(maxPayload))
	case m.Facts.Hidden%m.Facts.Heads != 0:
		return models.Say("%d attention heads do not divide the hidden size of %d", m.Facts.Heads, m.Facts.Hidden)
	case len(image.Labels) > maxClasses:
		return models.Say("it has more than %d classes", int64(maxClasses))
	}
	return models.Text{}
}

// visionTensors are the tensors of a vision transformer.
func visionTensors(_ family, m shard.Model) map[string][]int64 {
	h, inner, patch, image := m.Facts.Hidden, m.Facts.Intermediate, sizeIn(m.Config, "patch_size"), imageOf(m.Config)
	classes := int64(len(image.Labels))
	needed := map[string][]int64{"vit.embeddings.cls_token": {1, 1, h}, "vit.embeddings.position_embeddings": {1, m.Facts.MaxContext, h},
		"vit.embeddings.patch_embeddings.projection.weight": {h, image.Channels, patch, patch},
		"vit.embeddings.patch_embeddings.projection.bias":   {h}, "vit.layernorm.weight": {h}, "vit.layernorm.bias": {h},
		"classifier.weight": {classes, h}, "classifier.bias": {classes}}
	layer := map[string][]int64{}
	addEncoderLayer(layer, "attention.attention.", h, inner)
	addNorm(layer, "layernorm_before", h)
	addNorm(layer, "layernorm_after", h)
	addLayers(needed, m, "vit.encoder.layer", layer)
	return needed
}
