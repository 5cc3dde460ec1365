// Package batch decides what the next step computes: which sequences, how many rows of each.
//
// It is the scheduler's whole policy as a plain data structure: admission, continuous batching, prefill in
// chunks beside decodes, preemption, isolation of sequences whose steps failed. It sends no message, holds
// no clock and no memory of the device; the scheduler actor carries out what it decides.
package batch
