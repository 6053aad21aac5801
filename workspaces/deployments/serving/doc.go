// Package serving runs a model whose parts are held by processes: it writes what a process
// needs, speaks its protocol, and generates text by passing each token through all parts.
//
// A connection is one sequence: the part keeps its keys and values until it ends. Frames are
// two lengths of 4 bytes each, little-endian, a JSON header of at most 64 KiB and a payload of
// at most 64 MiB: token numbers as int32, hidden states and logits as float32. Before the
// first frame, both sides prove that they have the key: each sends 32 random bytes and the
// HMAC-SHA256 of its name and both nonces.
package serving
