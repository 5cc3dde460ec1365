// Package kvcode encodes rows of K and V in a few bits: a fixed orthogonal rotation, which spreads a few large features
// over all, and codes of the rotated values with a scale. The result depends on the row alone.
//
// Rotate and Unrotate apply the rotation; Code describes a kind of codes, and encodes rows. Levels of codes are
// Lloyd-Max codebooks (book.go), computed for any number of features and rounded to whole units.
package kvcode
