// Package kvcode codes rows of K and V in a few bits: a fixed orthogonal rotation, which spreads what few features
// have over all, and codes of the rotated values with a scale. All of it is a function of the row alone.
//
// Rotate and Unrotate are the rotation; Code says which codes there are, and finds those of a row. Levels of codes
// are Lloyd-Max codebooks (book.go), computed for any number of features, in whole units.
package kvcode
