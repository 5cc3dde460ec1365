// Package kv keeps the books of the paged KV cache: which block of 64 positions belongs to which sequence in each cache
// class, which blocks hold a prefix that a later prompt can reuse, and which lie behind a window and are given back. It
// knows block numbers only; the memory they name is the device's, and when a block is computed is the caller's to say
// (Publish, Pass).
//
// Three states: free, used (in the table of an open sequence) and cached (in the prefix tree, in no table). Cached
// blocks go to other memory when their place is wanted, if there is any, and come back (tiers.go); to copy them is the
// caller's.
package kv
