// Package kv keeps the books of the paged KV cache: which block of 64 positions belongs to which sequence,
// and which blocks hold a prefix that a later prompt can reuse. It knows block numbers only; the memory they
// name is the device's, and when a block is computed is the caller's to say (Publish).
//
// Three states: free, used (in the table of an open sequence) and cached (in the prefix tree, in no table).
package kv
