// Package kv keeps the books of the paged KV cache: which block of 64 positions belongs to which sequence in each
// cache class, which blocks hold a prefix that a later prompt can reuse, and which lie behind a window and are given
// back. It knows block numbers only: the memory behind them is the device's, and its caller says when a block is
// computed (Publish, Pass).
//
// A block is free, used (in the table of an open sequence) or cached (in the prefix tree, in no table). Cached
// blocks move to other memory when their place is needed, if there is any, and come back when a prompt begins with
// their text (tiers.go); the caller copies them.
package kv
