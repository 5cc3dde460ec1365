// Package embed makes the vector of a text from those of its rows.
package embed
