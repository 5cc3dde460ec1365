// Package picture makes of an encoded picture the pixel values that a model's vision tower reads.
//
// Inspect reads what a header says and refuses what is too large before anything is allocated (inspect.go, and a file
// for each format), Decode makes 8-bit RGB of it, turned as its orientation says and laid over white (decode.go,
// bitmap.go, orientation.go). Settings are a model's own way from there, from its configuration (settings.go,
// folder.go, clip.go); Process follows them (process.go, resize.go). Not here: towers, and what becomes of a prompt.
package picture
