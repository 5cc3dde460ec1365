// Package synth describes models that need not exist: the shapes of known ones, with random weights and a vocabulary
// that turns any text into tokens, so that speed can be measured without a download.
//
// A shape is a configuration as Hugging Face publishes it, or the keys of a file, and becomes metadata; which tensors
// that takes is for stages/model/arch to say. Nothing here knows of files. The models answer nonsense, at the speed of
// the real ones.
package synth
