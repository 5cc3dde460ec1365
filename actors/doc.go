// Package actors is the engine: a tree of supervised actors that load models and turn prompts into tokens.
//
// A house has a device, its loaders and any number of models; the actors of a model are its own. One file an actor, its
// messages on top; who may send what, and how much of it, stands in edges.go. What is decided is decided by the pure
// packages in stages; what is computed is computed by a backend.Device. All other packages use the facades in house.go
// and engine.go and never see an actor. How actors run, talk and restart is package run's.
package actors
