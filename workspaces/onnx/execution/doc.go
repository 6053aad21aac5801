// Package execution makes of an ONNX model a task graph whose operators execute its branches.
//
// Each branch becomes a model of its own, which a process executes with ONNX Runtime or, without
// it, with the DNN module of OpenCV: whatever Python can import (branch.py). Values
// go from branch to branch as files of NumPy. So the package runner does with a model all that it
// does with commands: CPUs by shares, new plans, retries, and going on after a crash.
//
// What a model is it leaves to package onnx. It must not know of HTTP or the database.
package execution
