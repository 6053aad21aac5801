// Package tokenizer turns text into the tokens of a model and back, as the file tokenizer.json
// of the model says: byte-level BPE with the pre-tokenizers Split, Digits and ByteLevel, which
// models like GPT-2 and Llama 3 have, or the words of BERT. Files that say anything else are refused with the reason,
// never read in part.
//
// It must not know models' weights, deployments or the database.
package tokenizer
