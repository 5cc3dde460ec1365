// Package arch records what the models of each family compute, as programs of internal/ir.
//
// One file each: it reads the family's hyper-parameters from a file's metadata and records ops on a builder; it
// touches no weights and no device. What differs from a known family stands in the comment. Where llama.cpp and
// transformers disagree, transformers is right; metadata keys and tensor names are llama.cpp's.
package arch
