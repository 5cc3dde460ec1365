// Package tile is the layout of weights that drivers of cards share: tiles of 32 rows × 256 columns. All 16-byte words
// of the 32 rows lie side by side, so that a row is a lane and 32 lanes read 512 bytes in one go. A matrix is tiles of
// rows, each with its tiles of columns in order; rows are padded to 32 and columns to 256 with zeros.
//
// What a row of a tile has, by layout, stands in gpu/vulkan/shaders/lib/tile.glsl. Kernels pack rows into tiles, and
// multiply by them; what they are dispatched with is their driver's business.
package tile
