// Package split writes the parts of a model to files, and puts the files of a model together
// again.
//
// A part is a safetensors file whose name is the SHA-256 of its content, so a part that is
// there is not written again. It is written under another name and renamed when its bytes are
// on the disk: what was killed continues with the part at which it was. The manifest,
// parts.json, is written last. It has the headers of the model's files, from which the merged
// files get the same bytes.
package split
