// Package tile is the layout of weights that drivers of GPUs share: tiles of 32 rows × 256 columns. The 16-byte words
// of the 32 rows lie interleaved, so that each lane of 32 takes a row and one read of all lanes is 512 contiguous
// bytes. A matrix is rows of tiles, each with its tiles in the order of columns; it is padded with zeros to 32 rows and
// 256 columns.
//
// What a row of a tile holds, by layout, stands in gpu/vulkan/shaders/lib/tile.glsl. Kernels pack rows into tiles and
// multiply by them; how they are dispatched is their driver's business.
package tile
