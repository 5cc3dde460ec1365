// Package actors is the engine: a tree of supervised actors that load a model and turn prompts into tokens.
//
// One file an actor, its messages on top; who may send what, and how much of it, stands in edges.go. What is
// decided is decided by the pure packages in stages; what is computed is computed by a backend.Device. All other
// packages use the facade in engine.go and never see an actor.
package actors
