// Package env is what the program sees of the world around it, and how it speaks to the person there: arguments,
// streams, files that are named, questions, bars, numbers as people read them. Tests put a small world in its place. It
// knows no models.
package env
