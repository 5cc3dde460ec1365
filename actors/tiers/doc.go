// Package tiers brings weights from the files of models to the devices that compute with them, as the plan says: some
// once, to slots of their own; the others whenever a step comes to them, to slots that they share.
//
// A Residency says which group is to be where, and belongs to the device's actor. What it wants goes from prefetcher to
// uploader, by way of reader (files), pool (slabs) and packer: each is a supervised actor, and edges.go says who may
// send what to whom. They know groups, slots and bytes: no sequences, no steps.
// residency.go and occupancy.go: what is in which slot, and what may leave it; foresight.go, stock.go: guesses and
// fills; way.go: why a group was late.
package tiers
