// Package embed pools the rows of a text into its vector.
package embed
