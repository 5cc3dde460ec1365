#version 460
#extension GL_GOOGLE_include_directive : require
// Puts the rows around each row of a picture side by side: y[r][i·width + c] = x[row i of size × size around r][c], line
// by line, 0 beyond the picture's edge. A picture without a grid is a line.
//
// A thread copies a value. Grid: workgroups for the values of a row, rows. x and y share no memory.
//
// variant: around
#include "lib/buffers.glsl"

layout(local_size_x = 64) in;

// A text is the rows of one sequence in a step. One without rows ends the list.
struct Text {
	uint row; // its first
	uint rows;
	uint position;
	uint height; // of its grid; 0: none
	uint width;
};

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Texts { Text v[]; };

layout(push_constant, scalar) uniform Push {
	Floats x;
	Floats y;
	Texts texts;
	Words count;  // rows that are there; 0: all
	uint width;   // of a row of x
	uint size;    // odd
	uint xStride; // in float32
	uint yStride;
};

void main() {
	uint i = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x, r = gl_WorkGroupID.y;
	if (i >= size * size * width || uint64_t(count) != 0 && r >= count.v[0]) {
		return;
	}
	uint n = 0;
	while (texts.v[n].rows > 0 && r - texts.v[n].row >= texts.v[n].rows) {
		n++;
	}
	Text t = texts.v[n];
	if (t.rows == 0) {
		return;
	}
	uint across = t.width == 0 ? t.rows : t.width, down = t.width == 0 ? 1 : t.height;
	uint at = r - t.row, step = i / width, middle = size / 2;
	uint line = at / across + step / size - middle, column = at % across + step % size - middle; // beyond 0: very large
	float v = 0.0;
	if (line < down && column < across) {
		v = x.v[(t.row + line * across + column) * xStride + i % width];
	}
	y.v[r * yStride + i] = v;
}
