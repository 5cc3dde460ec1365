// Package actors is the engine: a tree of supervised actors that load models and turn prompts into tokens.
//
// A house has a device, its loaders and any number of models; each model has actors of its own. There is one file for
// each actor, which begins with the messages that the actor accepts and the edges on which it sends; an answer is
// declared with its question. The pure packages in stages make the decisions; a backend.Device computes. All other
// packages use the facades in house.go, engine.go and vectors.go and never see an actor. Package run is how actors
// run, send messages and restart; package tiers is how weights come to the device.
//
// No two files use each other, not even by way of others. Each line uses only what is in lines above it:
//
//	clock, histogram, health    helpers that use no other file
//	kept, answers, adapters     files of cache blocks, and of answers; adapters that a model knows
//	annex                       a processor beside the device, and the rows that were made there
//	tape, incidents             what token traces are written to
//	config, eye, ear, lent      what a model is, how it sees and hears, what a file that only guesses for it has of it
//	far, spec                   what other machines may read of it; what is known of it; read-only
//	heads, hidden               a head that guesses for it, and the hidden states that it does so from
//	drafted                     all that guesses for it
//	plan                        its plan
//	planshape                   the plan of a model without a file
//	request, slots              what a client asks for, and what of it is remembered
//	stream                      the answer, as the client reads it
//	reader                      text, thoughts and calls of an answer's tokens
//	life                        how far a request has come
//	delays, step, stats         a step: what delayed it, what it computes, what it took
//	pictured                    pictures of a step's texts
//	masks                       masks of grammars that take long to find
//	transfer                    a text's blocks, on their way to a session's file or from there
//	mover, keep                 copies of cache blocks from tier to tier, and to which files
//	outlook, spending           what the actors of a model let others foresee; what a sequence's time goes to
//	kv, sequence, recorded      cache blocks, sequences, what token traces say of their requests
//	track, pace                 what a model records of itself; rows of a step
//	passing                     hidden states, on their way out of steps and into those of a head
//	guest, stay                 models on the device, which enter and leave
//	cursor, watchdog            how far a step is, which weights it lacks, how long it waits
//	timed, accounts             a device's own times of segments, and the cause of each gap
//	device                      the actor that computes steps, model by model
//	guesses                     who guesses tokens, and what that costs and gains
//	drafting, following         a draft model that does, from both sides
//	spent, foreseeing           what sequences wait for; what a scheduler lets others foresee
//	sampler, scheduler          tokens of a step, and the forming of the next one
//	records, session, sessions  the life of a request
//	model, root                 supervision; who enters and leaves
//	edges, spans, tenant        who may send what; what messages are about; a model of the house
//	recorder, house, engine     the facades
//	incoming                    a file that is read while it comes
//	header, adapting, saved     what the header of a model's file says, loaded or not; its adapters; saved sessions
//	foreseen                    what requests may expect
//	vectors, reread             requests to embedding models; answers that are read again
//	tree, enter, start          what actors are given; models enter and leave; a house is opened and closed
//	swapper                     models are loaded when they are asked for, and unloaded for others
package actors
