// Package token turns text into token ids and back, for every kind of vocabulary that GGUF files name: byte-level
// BPE, SentencePiece BPE, unigram, WordPiece and RWKV's bytes.
//
// A Vocab is made from metadata alone. Ids equal llama.cpp's, with one exception: text never forges a control token
// unless the caller asks for special tokens to be parsed. Decoding is exact to the byte. A table from pre-tokenizer
// names to rules says how text is cut before merging (pretokenizers.go).
package token
