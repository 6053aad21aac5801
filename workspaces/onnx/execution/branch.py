"""Executes a branch of a model in ONNX format.

    python3 branch.py             prints the runtime that is used
    python3 branch.py JOB.json    executes the branch

JOB.json has "model", the file of the branch, "inputs", the "name" and the "file" of each value that
it needs, and "outputs", the "name" and the "files" of each value that it computes. Values are arrays
of NumPy (.npy). The number of threads is OMP_NUM_THREADS.
"""

import json
import os
import sys

import numpy

# TensorProto.DataType of onnx/onnx.proto in github.com/onnx/onnx.
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
         "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}


def number(n):
    """A variable-length number of protocol buffers."""
    encoded = bytearray()
    while n > 127:
        encoded.append(n & 127 | 128)
        n >>= 7
    encoded.append(n)
    return bytes(encoded)


def field(tag, content):
    """A field of protocol buffers: a number or a message."""
    if isinstance(content, int):
        return number(tag << 3) + number(content)
    return number(tag << 3 | 2) + number(len(content)) + content


def array_type(value):
    """The TypeProto of an array."""
    kind = TYPES.get(value.dtype.name)
    if kind is None:
        sys.exit(f"arrays of {value.dtype.name} cannot be inputs")
    shape = b"".join(field(1, field(1, size)) for size in value.shape)
    return field(1, field(1, kind) + field(2, shape))


def declared(model, inputs, outputs, output_type=b""):
    """A model with inputs and outputs: of messages one after the other, the fields are merged."""
    graph = b"".join(field(11, field(1, name.encode()) + field(2, array_type(value))) for name, value in inputs.items())
    graph += b"".join(field(12, field(1, name.encode()) + output_type) for name in outputs)
    return model + field(7, graph)


def onnx_runtime():
    import onnxruntime

    def execute(model, inputs, outputs, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(declared(model, inputs, outputs), options, providers=["CPUExecutionProvider"])
        return session.run(outputs, inputs)

    return "ONNX Runtime " + onnxruntime.__version__, execute


def opencv():
    import cv2

    def execute(model, inputs, outputs, threads):
        cv2.setNumThreads(threads)
        any_type = field(2, field(1, field(1, 1) + field(2, b"")))  # OpenCV reads none of it, but needs one
        net = cv2.dnn.readNetFromONNX(numpy.frombuffer(declared(model, inputs, outputs, any_type), numpy.uint8))
        for name, value in inputs.items():
            net.setInput(value, name)
        return net.forward(outputs)

    return "OpenCV " + cv2.__version__, execute


def runtime():
    for one in onnx_runtime, opencv:
        try:
            return one()
        except ImportError:
            pass
    sys.exit("no runtime: Python can import neither onnxruntime nor cv2 (OpenCV)")


def save(path, value):
    """Writes an array in one step, so that neither a killed process nor a machine leaves a part of it."""
    with open(path + ".part", "wb") as file:
        numpy.save(file, value, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def main():
    name, execute = runtime()
    if len(sys.argv) == 1:
        print(name)
        return
    with open(sys.argv[1]) as file:
        job = json.load(file)
    inputs = {value["name"]: numpy.load(value["file"], allow_pickle=False) for value in job["inputs"]}
    with open(job["model"], "rb") as file:
        model = file.read()
    names = [value["name"] for value in job["outputs"]]
    results = execute(model, inputs, names, int(os.environ["OMP_NUM_THREADS"]))
    for output, value in zip(job["outputs"], results, strict=True):
        if not isinstance(value, numpy.ndarray) or value.dtype.name not in TYPES:
            sys.exit(f"{output['name']} is no array of numbers")
        for path in output["files"]:
            save(path, value)


main()
