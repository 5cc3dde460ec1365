// Package lang computes with regular languages over characters: regular expressions (RE2's syntax), unions,
// intersections, differences, lengths, sets of words. Every language is a deterministic automaton without dead ends,
// so that whoever follows its arrows can always finish.
//
// It knows nothing of bytes, JSON or tokens: stages/grammar spells characters in bytes. All work is counted against a
// Budget, because expressions come from strangers and a short one may need more states than there are atoms.
package lang
