package serving

// Files of a model beside those with tensors, and the most bytes that are read of them.
const (
	configName         = "config.json"
	generationName     = "generation_config.json"
	maxGenerationBytes = 1 << 20
	tokenizerName      = "tokenizer.json"
	maxTokenizerBytes  = 64 << 20
)
