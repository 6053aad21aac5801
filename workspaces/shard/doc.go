// Package shard says what a model consists of, how much memory it needs and how it is split
// over several devices. It reads headers and never weights.
//
// # Files
//
// [Read] reads a folder as Hugging Face's libraries write it: config.json, the files that
// end with .safetensors and, for more than one, model.safetensors.index.json. The format of
// safetensors is that of the section “Format” of the README in github.com/huggingface/safetensors:
// 8 bytes with the size of the header, little-endian; the header, a JSON object with dtype,
// shape and data_offsets for each name, and texts under __metadata__; then the bytes of the
// tensors in row-major order. A header has at most 32 MB here; names occur once; the bytes of the
// tensors cover the rest of the file without gaps or overlaps; scalars have an empty shape;
// a tensor can be empty.
//
// A layer is the tensors whose names agree up to the first number. Tensors without a number
// are before all layers (input) if they are embeddings by their names, else after them (output).
//
// # Memory
//
// With b sequences of s tokens, hidden size h, intermediate size f, a attention heads and k
// heads for keys and values of size d, L layers, a vocabulary of v tokens, and e bytes for a value:
//
//	weights      the bytes of all tensors
//	KV cache     2·L·k·d·b·s·e; with a compressed cache of c values (kv_lora_rank +
//	             qk_rope_head_dim), L·c·b·s·e; none for models that classify in one pass
//	activations  (2·h·b·c + max(2·(a+k)·d·s, 2·f·c))·e + 4·b·v, with chunks of c tokens, as many as
//	             have 16 MiB of hidden states in 32 bits; in one pass, b·s·(2·h + max(2·(a+k)·d, 2·f))·e + 4·b·v
//
// The cache is that of Kwon et al., “Efficient Memory Management for Large Language Model
// Serving with PagedAttention” (SOSP 2023), section 3: a key and a value for each token, layer
// and head. Activations are the terms of Korthikanti et al., “Reducing Activation
// Recomputation in Large Transformer Models” (MLSys 2023), section 4.1, for what inference
// keeps: one layer at a time, its residual and normalized input (2·h), and either queries, keys,
// values and their result (2·(a+k)·d) or the inside of a gated feed-forward network (2·f), without the
// matrix of attention, which kernels do not store; then the logits of the last tokens in 32 bits.
// One sequence computes at a time, and its prompt passes in chunks: all sequences have the former of a chunk,
// and one of them the latter, with the keys and values of its whole context.
//
// # Work
//
// A token takes 2 floating-point operations for each value of the matrices that it passes,
// and 2·s·a·d for attention in a layer: Kaplan et al., “Scaling Laws for Neural Language Models”
// (2020), section 2.1. Of experts, it passes those that config.json says. Embeddings are
// looked up and take none. For models that are not transformers, this is only a measure of
// how layers compare.
//
// The package is pure. It must not know of devices of the pool, HTTP or the database.
package shard
