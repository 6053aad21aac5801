// Package onnx reads which operators and tensors an ONNX model has, makes a task graph of them,
// and writes the branches of the graph as models of their own (cut.go). It reads no weights, but
// copies them into the branches.
//
// Field numbers are those of onnx/onnx.proto in github.com/onnx/onnx (ModelProto, GraphProto,
// NodeProto, AttributeProto, TensorProto, ValueInfoProto). Messages are read field by field from
// the file, and what is not needed is skipped: memory depends on the names and shapes only, which
// are bounded (wire.go, model.go).
//
// A branch is a chain of operators, each of which is the only one that uses the result of the
// one before, and uses nothing else of the graph. It ends where results fork, and a new one begins
// where they join (branches.go). Operators inside of an operator's own graph (If, Loop, Scan) are
// not followed.
//
// Operations follow from shapes: those that the model states, else those that follow from the
// inputs for the kinds below. A dimension that has only a name counts as 1. With y values of the
// result, x of the first input, and a kernel of k values (the product of kernel_shape, or of the
// spatial dimensions of the weights):
//
//	Conv                  2·y·(input channels of a group)·k; with bias + y
//	ConvTranspose         2·x·(output channels of a group)·k; with bias + y
//	Gemm, MatMul          2·y·(inner dimension); Gemm with a third input + y
//	pooling               y·k
//	global pooling        x
//	Reduce*, ArgMax…      x
//	BatchNormalization    2·y
//	Softmax, LogSoftmax   5·y
//	*Normalization        8·y
//	elementwise           y
//	moving of data        none
//
// Other operators, and those whose shapes are not known, have unknown operations: a plan counts
// them as the mean of the others. [Model.Unknown] names their kinds.
//
// The package is pure. It must not know of the machine, the database or HTTP.
package onnx
