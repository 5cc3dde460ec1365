// Puts the rows around each row of a picture side by side: y[r][i·width + c] = x[row i of size × size around r][c], line
// by line, 0 beyond the picture's edge. A picture without a grid is a line.
//
// A thread copies a value. Grid: blocks for the values of a row, rows. x and y share no memory.
//
// variant: around
#include "lib/device.cuh"

// A text is the rows of one sequence in a step. One without rows ends the list.
struct Text {
	uint row, rows; // its first, and how many
	uint position;
	uint height, width; // of its grid; 0: none
};

struct Args {
	uint64_t x, y, texts;
	uint64_t count;        // rows that are there; 0: all
	uint width, size;      // of a row of x; odd
	uint xStride, yStride; // in float32
};

KERNEL(around, Args, 64) {
	uint i = blockX() * blockThreads() + threadX(), r = blockY();
	if (i >= a.size * a.size * a.width || (a.count != 0 && r >= *at<uint>(a.count))) {
		return;
	}
	const Text *t = at<Text>(a.texts);
	while (t->rows > 0 && r - t->row >= t->rows) {
		t++;
	}
	if (t->rows == 0) {
		return;
	}
	uint across = t->width == 0 ? t->rows : t->width, down = t->width == 0 ? 1 : t->height;
	uint place = r - t->row, step = i / a.width, middle = a.size / 2;
	// Beyond 0 these are very large.
	uint line = place / across + step / a.size - middle, column = place % across + step % a.size - middle;
	float v = 0.0f;
	if (line < down && column < across) {
		v = at<float>(a.x)[uint64_t(t->row + line * across + column) * a.xStride + i % a.width];
	}
	at<float>(a.y)[uint64_t(r) * a.yStride + i] = v;
}
