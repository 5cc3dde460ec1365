// Package kvmix chooses types of K and V for each layer's cache, so that they take a given number of bits and a model
// loses little by them. What is lost where is a Profile, which was measured (sluice kv-profile); without one, Rule
// chooses the same types for all layers.
package kvmix
