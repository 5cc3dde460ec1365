// Cards of a team put together a value of which each has a part (kernel.Exchange): each leaves its part in the boxes of
// the others, waits for theirs, and adds all in the order of the cards. Every card has the same sum, whoever is first.
//
// Few values go with the number of the exchange behind each, in words of eight bytes that are written at once: who sees
// the number has the value, and nothing else is waited for. Many go as they are; a block says by a flag, behind a fence,
// that its own are there. A box has room for two exchanges: a card that begins one has seen that the others began the
// one before, and so have read the one before that.
//
// Blocks wait for the blocks of their number on other cards, so there are no more than run at once. A card that waited in
// vain waits no more in the same step: its own flag, which no other card needs, has the number of the step's first
// exchange.
//
// variant: exchange
#include "lib/others.cuh"

struct Args {
	uint64_t part, y, residual; // float32 rows; residual 0: none
	uint64_t first;             // number of the step's first exchange
	uint64_t count, status;
	uint64_t box[8];            // by card
	uint64_t many;              // where values of many rows begin in a box
	uint index, member, members, rows;
	uint width, partStride, yStride, join;
	uint room, few;    // bytes in a box of a card's many values, and of its few
	uint64_t patience; // nanoseconds
};

constexpr uint flagBlocks = 128, unanswered = 0xffffffffu, often = 4096;

// Clock looks at the time now and then.
struct Clock {
	uint64_t began;
	uint looks;
};

// late says whether a card has waited too long; then the step fails.
DEVICE bool late(const Args &a, Clock &c) {
	if (++c.looks % often != 0) {
		return false;
	}
	uint64_t now = nanoseconds();
	c.began = c.began == 0 ? now : c.began;
	if (now - c.began < a.patience) {
		return false;
	}
	*at<uint>(a.status) = unanswered;
	*at<uint>(a.box[a.member] + uint64_t(4) * flagBlocks * a.member) = *at<uint>(a.first);
	return true;
}

// vain says whether an earlier exchange of the step waited in vain.
DEVICE bool vain(const Args &a) {
	return *at<uint>(a.box[a.member] + uint64_t(4) * flagBlocks * a.member) == *at<uint>(a.first);
}

// slot is which part of a box's halves a card has for an exchange.
DEVICE uint64_t slot(const Args &a, uint number, uint member) { return (number & 1) * a.members + member; }

KERNEL(exchangeFew, Args, 256) {
	uint number = *at<uint>(a.first) + a.index, pairs = a.width / 2;
	uint all = lesser(a.rows, *at<uint>(a.count)) * pairs, begin = blockX() * blockThreads() + threadX();
	uint64_t flags = uint64_t(4) * flagBlocks * a.members;
	if (vain(a)) {
		return;
	}
	for (uint i = begin; i < all; i += gridX() * blockThreads()) {
		uint2 own = at<uint2>(a.part + uint64_t(4) * (i / pairs) * a.partStride)[i % pairs];
		for (uint m = 0; m < a.members; m++) {
			if (m != a.member) {
				storeOpen(at<uint4>(a.box[m] + flags + slot(a, number, a.member) * a.few) + i, {own.x, number, own.y, number});
			}
		}
	}
	Clock c = {};
	for (uint i = begin; i < all; i += gridX() * blockThreads()) {
		uint r = i / pairs, at2 = i % pairs;
		uint2 own = at<uint2>(a.part + uint64_t(4) * r * a.partStride)[at2];
		uint64_t to = a.y + uint64_t(4) * r * a.yStride;
		float x = 0.0f, y = 0.0f;
		for (uint m = 0; m < a.members; m++) {
			uint4 v = {own.x, number, own.y, number};
			if (m != a.member) {
				const uint4 *from = at<uint4>(a.box[a.member] + flags + slot(a, number, m) * a.few) + i;
				for (v = loadOpen(from); v.y != number || v.w != number; v = loadOpen(from)) {
					if (late(a, c)) {
						return;
					}
				}
			}
			if (a.join != 0) {
				if (m != a.member) {
					at<uint2>(to)[m * pairs + at2] = {v.x, v.z};
				}
				continue;
			}
			x = m == 0 ? bitsFloat(v.x) : x + bitsFloat(v.x);
			y = m == 0 ? bitsFloat(v.z) : y + bitsFloat(v.z);
		}
		if (a.join != 0) {
			continue;
		}
		if (a.residual != 0) {
			uint2 more = at<uint2>(a.residual + uint64_t(4) * r * a.yStride)[at2];
			x = x + bitsFloat(more.x);
			y = y + bitsFloat(more.y);
		}
		at<uint2>(to)[at2] = {floatBits(x), floatBits(y)};
	}
}

// quad is four values of a part: the card's own, or what another one left.
DEVICE uint4 quad(const Args &a, uint number, uint m, uint i, uint r, uint c) {
	if (m == a.member) {
		return at<uint4>(a.part + uint64_t(4) * r * a.partStride)[c];
	}
	return loadOpen(at<uint4>(a.box[a.member] + a.many + slot(a, number, m) * a.room) + i);
}

KERNEL(exchangeMany, Args, 512) {
	uint number = *at<uint>(a.first) + a.index, quads = a.width / 4;
	uint all = lesser(a.rows, *at<uint>(a.count)) * quads, begin = blockX() * blockThreads() + threadX();
	if (vain(a)) {
		return;
	}
	for (uint i = begin; i < all; i += gridX() * blockThreads()) {
		uint4 own = at<uint4>(a.part + uint64_t(4) * (i / quads) * a.partStride)[i % quads];
		for (uint m = 0; m < a.members; m++) {
			if (m != a.member) {
				at<uint4>(a.box[m] + a.many + slot(a, number, a.member) * a.room)[i] = own;
			}
		}
	}
	fenceSystem();
	sync();
	uint m = threadX();
	if (m < a.members && m != a.member) {
		storeFlag(at<uint>(a.box[m]) + a.member * flagBlocks + blockX(), number);
	}
	sync();
	if (m < a.members && m != a.member) {
		Clock c = {};
		const uint *flag = at<uint>(a.box[a.member]) + m * flagBlocks + blockX();
		while (static_cast<int>(loadFlag(flag) - number) < 0) {
			if (late(a, c)) {
				break;
			}
		}
	}
	sync();
	for (uint i = begin; i < all; i += gridX() * blockThreads()) {
		uint r = i / quads, c = i % quads;
		uint64_t to = a.y + uint64_t(4) * r * a.yStride;
		float4 sum = {};
		for (m = 0; m < a.members; m++) {
			if (a.join != 0) {
				if (m != a.member) {
					at<uint4>(to)[m * quads + c] = quad(a, number, m, i, r, c);
				}
				continue;
			}
			uint4 v = quad(a, number, m, i, r, c);
			float4 f = {bitsFloat(v.x), bitsFloat(v.y), bitsFloat(v.z), bitsFloat(v.w)};
			sum = m == 0 ? f : float4{sum.x + f.x, sum.y + f.y, sum.z + f.z, sum.w + f.w};
		}
		if (a.join != 0) {
			continue;
		}
		if (a.residual != 0) {
			float4 more = at<float4>(a.residual + uint64_t(4) * r * a.yStride)[c];
			sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
		}
		at<float4>(to)[c] = sum;
	}
}
