// Package onnxtest makes models in ONNX format for tests.
//
// It must not know of what reads them.
package onnxtest
