package models

// ModelTask is what a model does.
type ModelTask string

const (
	TaskTextGeneration      ModelTask = "text-generation"
	TaskImageClassification ModelTask = "image-classification"
	TaskTextEmbedding       ModelTask = "text-embedding"
)

// ServedModel is a model as a deployment serves it.
type ServedModel struct {
	Path        FilePath
	Plan        ModelPlan
	Hidden      int64 // width of the hidden states
	Task        ModelTask
	Vocabulary  int64  // number of tokens, of classes, or of the values of an embedding
	Context     int64  // tokens of a sequence: as requested, or the default; of an image, those that it has
	TextPrompts bool   // a token is a byte of text
	Files       string // state of the files, as they were before they were read
}

// WrittenPart is the file of a part.
type WrittenPart struct {
	File string
	Size int64
}

// ServedInput is the load that a deployment is planned for.
type ServedInput struct {
	Batch       int64  `json:"batch,omitempty" minimum:"0" maximum:"64" doc:"requests at once; default 1"`
	Context     int64  `json:"context,omitempty" minimum:"0" maximum:"1000000" doc:"tokens of request and completion; default 4096 or less"`
	ServiceType string `json:"service_type,omitempty" maxLength:"100" doc:"service type whose split is used; default: by the architecture"`
}
