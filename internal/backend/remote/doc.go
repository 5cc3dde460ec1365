// Package remote is a device that computes in another process, on another machine: calls of internal/backend travel
// over one connection for each model to a Lender, which has a device of its own and carries them out (docs/adr/0119).
// compose divides a model over it as over a card.
//
// A connection carries frames, each a length, a kind and a body; the lender answers them one after another, in their
// order, so answers have no numbers. A step is written while it is filled, and goes out when it is finished, or when a
// value is wanted of it: a token costs one frame in each direction. Steps are sent without waiting for those before.
//
// Who connects and who lets him in is the caller's: here both sides trust each other to be members, and neither to be
// well: what arrives is bounded, and a fault of it ends the connection alone.
package remote
