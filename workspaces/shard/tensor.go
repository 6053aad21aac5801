package shard

// Tensor is a tensor of a file.
type Tensor struct {
	Name       string
	Type       string
	Shape      []int64
	From       int64 // of its bytes in the file
	Until      int64
	Parameters int64
}

// Bytes is the size of the tensor.
func (t Tensor) Bytes() int64 { return t.Until - t.From }

// Placed is a tensor of a part, or those of its rows or columns that the part has, and the file
// that it is in. Its shape is what the part has.
type Placed struct {
	File int // index in Model.Files
	Tensor
	Step int64 // bytes from the columns of a row to those of the next one; 0: the bytes are consecutive
}

// Bytes is the size in the part.
func (p Placed) Bytes() int64 {
	if p.Step == 0 {
		return p.Tensor.Bytes()
	}
	return p.Shape[0] * p.width()
}

// width is the number of bytes of a row's columns.
func (p Placed) width() int64 { return p.Tensor.Bytes() - (p.Shape[0]-1)*p.Step }
