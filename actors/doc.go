// Package actors is the engine: a tree of supervised actors that load models and turn prompts into tokens.
//
// A house has a device, its loaders and any number of models; the actors of a model are its own. One file an actor;
// what it accepts and the edges on which it sends stand on top of it, and an answer stands with its question. What is
// decided is decided by the pure packages in stages; what is computed is computed by a backend.Device. All other
// packages use the facades in house.go, engine.go and vectors.go and never see an actor. How actors run, talk and
// restart is package run's; how weights come to the device is package tiers's.
//
// No two files use each other, not even by way of others. From what is used to who uses it:
//
//	clock, histogram, health    what stands alone
//	config, spec, plan          what a model is, and what was planned for it; nobody changes it
//	request                     what is asked for
//	stream                      how the answer is read
//	delays, step, stats         one pass over the model: why it was planned late, what it computed, what that took
//	masks                       what may follow, where it takes long to find
//	mover                       blocks of caches that go from tier to tier
//	kv, sequence, tape, pace    whose rows are in it, and in which blocks; what is recorded, and learnt for the next one
//	guest, stay                 the device's models, which come and go
//	cursor, watchdog            where it is in a step, which weights that lacks, for how long it waits
//	timed, accounts             what a device says that it did, and the cause of each gap
//	device                      whose turn it is
//	guesses                     who guesses tokens, and what that costs and gives
//	sampler, scheduler          what comes of a step, and the next one
//	records, session, sessions  the life of a request
//	model, root                 supervision; who enters and leaves
//	edges, spans, tenant        who may send what; what messages are about; what is known of a model
//	recorder, house, engine     the facades
//	vectors                     what a model that makes vectors is asked
//	tree, enter, start          who is given what; models enter and leave; a house is opened and closed
//	swapper                     models enter when they are asked for, and leave for others
package actors
