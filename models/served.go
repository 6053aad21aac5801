package models

// ServedModel is a model as a deployment serves it.
type ServedModel struct {
	Path        FilePath
	Plan        ModelPlan
	Hidden      int64 // width of the hidden states
	Vocabulary  int64 // number of tokens
	MaxContext  int64 // tokens; 0: not known
	TextPrompts bool  // a token is a byte of text
}

// WrittenPart is the file of a part.
type WrittenPart struct {
	File string
	Size int64
}
