// Package env is the program's access to the world around it, and to the person there: arguments, streams, named files,
// questions, progress bars, numbers as people read them. Tests replace it by a small world. It knows no models.
package env
