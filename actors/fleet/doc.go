// Package fleet runs models by name, within one budget: whoever asks for one waits until it is loaded, and others leave
// for it. Each is an engine of its own, with actors, device and loaders of its own, so that nothing that happens to one
// is felt by another. What is loaded and what leaves is decided by package swap; this package carries it out, and
// supervises: an engine that cannot go on is closed, and loaded again for the next who asks.
package fleet
