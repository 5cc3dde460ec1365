// Package pixels records the programs that make pictures, and says which tensors of a file they take.
//
// A picture's rows are cells of pixels: see ir.Conv2DArgs. Tensors are found by their published names (tensors.go);
// what a network's sizes are is read from their shapes. There are upscalers (rrdb.go),
// autoencoders (autoencoder.go) and a transformer (zimage.go). A device computes the programs;
// how is actors/paint's business.
package pixels
