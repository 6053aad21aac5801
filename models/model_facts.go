package models

// ModelFacts is what a model consists of, by its configuration and the headers of its
// files. Numbers that the configuration does not state are 0.
type ModelFacts struct {
	Type         string       `json:"model_type,omitempty" doc:"model_type of config.json"`
	Architecture string       `json:"architecture,omitempty" doc:"first of the architectures in config.json"`
	Files        int          `json:"files" doc:"number of files with tensors"`
	Tensors      int          `json:"tensors" doc:"number of tensors"`
	Parameters   int64        `json:"parameters" doc:"number of values in all tensors"`
	Bytes        int64        `json:"bytes" doc:"bytes of all tensors"`
	Types        []ModelType  `json:"types" doc:"data types, the most bytes first"`
	Hidden       int64        `json:"hidden_size" doc:"width of the layers; 0 if not known"`
	Intermediate int64        `json:"intermediate_size" doc:"width inside the feed-forward networks; 0 if not known"`
	Heads        int64        `json:"attention_heads" doc:"number of attention heads; 0 if not known"`
	KVHeads      int64        `json:"kv_heads" doc:"number of key and value heads; 0 if not known"`
	HeadSize     int64        `json:"head_size" doc:"width of an attention head; 0 if not known"`
	Latent       int64        `json:"kv_latent_size" doc:"values per token and layer in a compressed KV cache; 0 if it is not compressed"`
	Vocabulary   int64        `json:"vocabulary_size" doc:"number of tokens; 0 if not known"`
	MaxContext   int64        `json:"max_context" doc:"longest context, in tokens; 0 if not known"`
	Experts      int64        `json:"experts" doc:"experts of a layer; 0 for none"`
	ExpertsUsed  int64        `json:"experts_used" doc:"experts that a token passes in a layer; 0 for none"`
	ValueBytes   int64        `json:"value_bytes" doc:"bytes of a value in activations and in the cache of keys and values"`
	Tied         bool         `json:"tied_embeddings" doc:"the output layer uses the embeddings"`
	Layers       []ModelLayer `json:"layers" doc:"in the order in which data passes them"`
}

// ModelType is how many tensors have a data type.
type ModelType struct {
	Type       string `json:"type" doc:"as safetensors names it"`
	Tensors    int    `json:"tensors" doc:"number of tensors"`
	Parameters int64  `json:"parameters" doc:"number of values"`
	Bytes      int64  `json:"bytes" doc:"bytes of the tensors"`
}

// Kinds of layers.
const (
	LayerInput  = "input"  // what is before the first layer, such as embeddings
	LayerInner  = "layer"  // one of a sequence
	LayerOutput = "output" // what is after the last one
)

// ModelLayer is the tensors of a layer.
type ModelLayer struct {
	Name             string `json:"name" doc:"beginning of the names of its tensors; input and output for those of no layer"`
	Kind             string `json:"kind" enum:"input,layer,output" doc:"input is before all layers, output after them"`
	Tensors          int    `json:"tensors" doc:"number of tensors"`
	Parameters       int64  `json:"parameters" doc:"number of values"`
	Bytes            int64  `json:"bytes" doc:"bytes of the tensors"`
	MatrixParameters int64  `json:"matrix_parameters" doc:"values of its matrices, without experts"`
	MatrixBytes      int64  `json:"matrix_bytes" doc:"bytes of its matrices, without experts"`
	ExpertParameters int64  `json:"expert_parameters" doc:"values of its experts"`
	ExpertBytes      int64  `json:"expert_bytes" doc:"bytes of its experts"`
}

// ModelMemory is the memory that a model needs for a load, in bytes.
type ModelMemory struct {
	Batch       int64 `json:"batch" doc:"sequences at once"`
	Context     int64 `json:"context" doc:"tokens of a sequence"`
	Weights     int64 `json:"weights_bytes" doc:"bytes of all tensors"`
	KVCache     int64 `json:"kv_cache_bytes" doc:"cache of keys and values"`
	Activations int64 `json:"activations_bytes" doc:"largest intermediate results"`
	Total       int64 `json:"total_bytes" doc:"sum"`
	Partial     bool  `json:"partial" doc:"config.json does not state what activations and cache need, so they are not counted"`
}

// ModelDevice is a device that a model can be placed on.
type ModelDevice struct {
	Name        string  `json:"name" doc:"provider and number of the GPU on it; for stated devices their number, from 0"`
	Model       string  `json:"gpu_model,omitempty" doc:"GPU model; absent for stated devices"`
	Machine     string  `json:"provider,omitempty" doc:"name of the provider; absent for stated devices"`
	Simulated   bool    `json:"simulated,omitempty" doc:"the device is simulated"`
	Single      bool    `json:"single,omitempty" doc:"a MIG instance, or limited by MPS: it serves models on one device only"`
	MemoryBytes int64   `json:"memory_bytes" doc:"memory that is available"`
	TFLOPS      float64 `json:"tflops" doc:"speed in TFLOP/s"`
	LinkGBps    float64 `json:"link_gb_per_second" doc:"what it receives from other devices, in GB/s"`
}

// ModelSplit is how a model is cut.
type ModelSplit string

// Splits of a model.
const (
	SplitNone    ModelSplit = "none"    // it is on one device
	SplitLayers  ModelSplit = "layers"  // a part has some layers
	SplitHeads   ModelSplit = "heads"   // a part has some attention heads and columns of each layer
	SplitExperts ModelSplit = "experts" // a part has some experts of each layer
)

// ModelCombine is what is done with the results of the parts.
type ModelCombine string

// Ways to combine the results of parts.
const (
	CombineNone        ModelCombine = "none"
	CombinePassOn      ModelCombine = "pass_on"
	CombineConcatenate ModelCombine = "concatenate"
	CombineSum         ModelCombine = "sum"
	CombineVote        ModelCombine = "vote"
)

// PartOverheadMiB is the GPU memory of a process that computes a part, besides what is
// planned for the part: with PyTorch 2.11 on an H200, CUDA took 650 MiB once it computed; the
// rest is for the work space of its libraries.
const PartOverheadMiB = 896

// ModelPlan is how a model is placed on devices.
type ModelPlan struct {
	Possible      bool         `json:"possible" doc:"the devices have enough memory"`
	ServiceType   string       `json:"service_type,omitempty" doc:"service type whose split is used; absent if there is none"`
	Split         ModelSplit   `json:"split" enum:"none,layers,heads,experts" doc:"where the model is cut; none if it is on one device"`
	Combine       ModelCombine `json:"combine" enum:"none,pass_on,concatenate,sum,vote" doc:"what is done with the results of the parts"`
	MarginPercent int64        `json:"margin_percent" doc:"share of each device's memory that is kept free, percent"`
	Seconds       float64      `json:"bottleneck_seconds" doc:"estimated time of the slowest part for a pass over the whole context"`
	Reasons       []Text       `json:"reasons,omitempty"`
	Parts         []ModelPart  `json:"parts" doc:"in the order in which data passes them; empty if the plan is not possible"`
}

// ModelPart is what a device has of a model, with the memory that it needs there in bytes.
type ModelPart struct {
	Device      ModelDevice `json:"device" doc:"device of the part"`
	First       string      `json:"first" doc:"first layer, head or expert of the part"`
	Last        string      `json:"last" doc:"last layer, head or expert of the part"`
	From        int         `json:"from" doc:"number of the first one, from 0"`
	Until       int         `json:"until" doc:"number after the last one"`
	Weights     int64       `json:"weights_bytes" doc:"bytes of its tensors"`
	KVCache     int64       `json:"kv_cache_bytes" doc:"cache of keys and values"`
	Activations int64       `json:"activations_bytes" doc:"largest intermediate results"`
	Total       int64       `json:"total_bytes" doc:"sum"`
	Process     int64       `json:"process_bytes,omitempty" doc:"memory of the machine for them, in a deployment; more than the sum where GPUs are simulated: CPUs compute in float32"`
	Seconds     float64     `json:"seconds" doc:"estimated time for a pass over the whole context"`
}

// ModelReport is a model with what it needs and how it is placed.
type ModelReport struct {
	Path    FilePath
	Facts   ModelFacts
	Memory  ModelMemory
	Devices []ModelDevice // that the plan chooses from
	Plan    ModelPlan

	NotServed    Text     // why a deployment cannot serve it; empty if it can
	ServiceTypes []string // by which it can be planned
}

// Say adds sentences to the reasons of the plan.
func (p *ModelPlan) Say(reasons ...Text) { p.Reasons = append(p.Reasons, reasons...) }

// DeviceQuery asks for the devices of the pool on which a project can have parts of a model.
type DeviceQuery struct {
	ProjectID     int64
	Cores         int64 // GPU cores of a part
	Holder        int64 // whose shares are as good as free; 0: nobody's
	ReservationID int64 // to which the devices belong; 0: none
}

// FreeDevice is what is available of a device of the pool.
type FreeDevice struct {
	ID        int64
	Provider  string // its name
	Number    int64  // on its machine, from 0
	Model     string
	Simulated bool
	MemoryMiB int64
	Single    bool // serves demands of one GPU only
}
