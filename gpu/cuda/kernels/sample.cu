// Draws a token of a row of logits, as stages/sample does, bit for bit: the likeliest topK, those of them that together
// reach a probability, those with some share of the likeliest one's, and of these one by its weight under a temperature.
//
// Two launches. First a block owns a part of a row and keeps its best; then one owns a row, and keeps the best of all parts.
// Grid: parts, draws; the second time one part. The best are found by counting: digit by digit, from the highest, of keys
// of 64 bits, which are in the order of logits, and of equal ones in that of ids backwards.
//
// What is left is few, and weighed by whole numbers, as internal/backend/draw.go defines them, from the bits of logits: no
// float is computed with. Their sums are exact, so that nothing has to be sorted.
//
// variant: sample
#include "lib/device.cuh"

constexpr uint most = 1024, threads = 256, none = ~0u; // topK is at most

struct Draw {
	uint64_t random; // picks the token
	uint64_t most;   // a surprise, than which none is larger
	uint factor;     // of the temperature's scale
	int shift;
	uint reach; // the share of all weights that is enough, in units of 2^-32
	uint topK;  // 0: this row is not drawn
};

struct Args {
	uint64_t logits;
	uint64_t scratch; // [draw][part][most] pairs of a key and an id
	uint64_t draws;
	uint64_t ids;
	uint64_t second; // another place for the ids; 0: none
	uint width;
	uint stride; // of logits, in float32
	uint parts;
	uint join;
};

constexpr uint everything = ~0u;                      // of reach: no share is enough
constexpr uint plain = 3098164009u;                   // factor and shift of temperature 1
constexpr int plainShift = 25;

// Shared is the block's memory, of 18456 bytes.
struct Shared {
	uint64_t weights[most];
	uint keys[most], tokens[most];
	uint counts[threads], sums[threads];
	uint found, digit, above, left, best; // best: a key
};

// Item is a key and an id turned round; both 0: nothing.
struct Item { uint word[2]; };

// Work is what a block draws of: a row, or its part of it.
struct Work {
	const Args &a;
	Shared &m;
	Draw draw;
	uint topK, items;
};

// keyOf has the order of floats. What cannot be drawn, -Inf and NaN, is 0.
DEVICE uint keyOf(float v) {
	uint b = floatBits(v);
	if (b == 0xff800000u || (b & 0x7fffffffu) > 0x7f800000u) {
		return 0;
	}
	b = b == 0x80000000u ? 0 : b; // -0 is 0
	return b >> 31 != 0 ? ~b : b | 0x80000000u;
}

DEVICE Item itemOf(const Work &w, uint i) {
	const Args &a = w.a;
	if (a.join != 0) {
		uint2 v = at<const uint2>(a.scratch)[(uint64_t(blockY()) * a.parts + i / w.topK) * most + i % w.topK];
		return v.y != none ? Item{{v.x, ~v.y}} : Item{{0, 0}};
	}
	uint id = blockX() * ((a.width + a.parts - 1) / a.parts) + i;
	uint k = keyOf(at<const float>(a.logits)[uint64_t(blockY()) * a.stride + id]);
	return k == 0 ? Item{{0, 0}} : Item{{k, ~id}};
}

// nth leaves in shared memory which digit the n-th largest of those counted has, and how many are above.
DEVICE void nth(Shared &m, uint n) {
	uint thread = threadX(), own = m.counts[255 - thread], sum = own; // of this digit and those above it
	for (uint step = 1; step < 256; step *= 2) {
		sync();
		m.sums[thread] = sum;
		sync();
		if (thread >= step) {
			sum += m.sums[thread - step];
		}
	}
	if (sum >= n && sum - own < n) {
		m.digit = 255 - thread;
		m.above = sum - own;
		m.found = 1;
	}
	sync();
}

// least is the least of the n largest items; nothing if there are no more than n.
DEVICE Item least(const Work &w, uint n) {
	Shared &m = w.m;
	Item prefix = {{0, 0}}, mask = {{0, 0}};
	for (uint d = 0; d < 8; d++) {
		uint word = d / 4, shift = 24 - d % 4 * 8;
		m.counts[threadX()] = 0;
		m.found = 0;
		sync();
		for (uint i = threadX(); i < w.items; i += threads) {
			Item v = itemOf(w, i);
			if (v.word[0] != 0 && (v.word[0] & mask.word[0]) == prefix.word[0] && (v.word[1] & mask.word[1]) == prefix.word[1]) {
				atomicAdd(&m.counts[(word == 0 ? v.word[0] : v.word[1]) >> shift & 255u], 1);
			}
		}
		sync();
		nth(m, n);
		if (m.found == 0) {
			return {{0, 0}};
		}
		n -= m.above;
		uint digit = m.digit << shift, whole = 255u << shift;
		prefix = {{prefix.word[0] | (word == 0 ? digit : 0), prefix.word[1] | (word == 1 ? digit : 0)}};
		mask = {{mask.word[0] | (word == 0 ? whole : 0), mask.word[1] | (word == 1 ? whole : 0)}};
		sync();
	}
	return prefix;
}

// gather takes all items from a least one on, in any order.
DEVICE void gather(const Work &w, Item from) {
	const Args &a = w.a;
	Shared &m = w.m;
	uint2 *to = at<uint2>(a.scratch) + (uint64_t(blockY()) * a.parts + blockX()) * most;
	if (threadX() == 0) {
		m.left = 0;
	}
	sync();
	for (uint i = threadX(); i < w.items; i += threads) {
		Item v = itemOf(w, i);
		if (v.word[0] == 0 || v.word[0] < from.word[0] || (v.word[0] == from.word[0] && v.word[1] < from.word[1])) {
			continue;
		}
		uint n = atomicAdd(&m.left, 1);
		if (a.join != 0) {
			m.keys[n] = v.word[0];
			m.tokens[n] = ~v.word[1];
		} else {
			to[n] = {v.word[0], ~v.word[1]};
		}
	}
	sync();
	if (a.join == 0) {
		for (uint i = m.left + threadX(); i < w.topK; i += threads) {
			to[i].y = none;
		}
	}
}

// units is a logit in units of 2^-shift, towards 0; from 2^55 on no more than its order.
DEVICE int64_t units(uint key, int shift) {
	uint b = (key >> 31) != 0 ? key & 0x7fffffffu : ~key & 0x7fffffffu, exponent = b >> 23;
	uint64_t u = (b & 0x7fffffu) | (exponent > 0 ? 0x800000u : 0);
	int up = static_cast<int>(greater(exponent, 1u)) - 150 + shift;
	if (up >= 32) {
		u = uint64_t(b) << 32;
	} else if (up >= 0) {
		u <<= up;
	} else {
		u >>= lesser(-up, 24);
	}
	return (key >> 31) != 0 ? static_cast<int64_t>(u) : -static_cast<int64_t>(u);
}

// surprise is how much less likely than the best a token is: a power of two, in units of 2^-56.
DEVICE uint64_t surprise(uint best, uint key, uint factor, int shift) {
	uint64_t less = static_cast<uint64_t>(units(best, shift)) - static_cast<uint64_t>(units(key, shift));
	return lesser(less, uint64_t(0xffffffffu)) * factor;
}

// high is the upper word of a product.
DEVICE uint high(uint a, uint b) { return static_cast<uint>(uint64_t(a) * b >> 32); }

// roots are the numbers 2^(31 - i/32).
CONSTANT uint roots[32] = {
	2147483648u, 2101467502u, 2056437387u, 2012372174u, 1969251188u, 1927054196u, 1885761398u, 1845353420u,
	1805811301u, 1767116489u, 1729250827u, 1692196547u, 1655936265u, 1620452965u, 1585730000u, 1551751076u,
	1518500250u, 1485961921u, 1454120821u, 1422962010u, 1392470869u, 1362633090u, 1333434672u, 1304861917u,
	1276901417u, 1249540052u, 1222764986u, 1196563654u, 1170923762u, 1145833280u, 1121280436u, 1097253708u};

// weightOf is 2^(42-surprise), rounded down.
DEVICE uint64_t weightOf(uint64_t s) {
	uint whole = static_cast<uint>(s >> 56), fraction = static_cast<uint>(s >> 24), power = roots[fraction >> 27];
	if (whole > 42) {
		return 0;
	}
	uint r = fraction & 0x7ffffffu, less = 238388332u - high(r, 41309550u);
	less = 1031764991u - high(r, less);
	less = high(r, 2977044472u - high(r, less));
	return uint64_t(power - high(power, less)) << 11 >> whole;
}

// enough is the least sum of weights that is a share of all, which is below 2^53.
DEVICE uint64_t enough(uint share, uint64_t all) {
	uint64_t low = (all & 0xffffffffu) * share, least = (all >> 32) * share + (low >> 32);
	return static_cast<uint>(low) != 0 ? least + 1 : least;
}

// pointOf is a random number below all, which is below 2^53: all·random/2^64.
DEVICE uint64_t pointOf(uint64_t random, uint64_t all) {
	uint64_t r0 = random & 0xffffffffu, r1 = random >> 32, a0 = all & 0xffffffffu, a1 = all >> 32;
	uint64_t middle = r1 * a0 + (r0 * a0 >> 32), other = r0 * a1 + (middle & 0xffffffffu);
	return r1 * a1 + (middle >> 32) + (other >> 32);
}

// Sum is of the weights of all, and of those before one.
struct Sum { uint64_t all, before; };

// better adds up the weights of those that are likelier than item i.
DEVICE Sum better(const Shared &m, uint i) {
	Sum s = {0, 0};
	for (uint j = 0; j < m.left; j++) {
		bool before = m.keys[j] > m.keys[i] || (m.keys[j] == m.keys[i] && m.tokens[j] < m.tokens[i]);
		s = {s.all + m.weights[j], s.before + (before ? m.weights[j] : 0)};
	}
	return s;
}

// cut sets the weights of all that do not stay to 0, and of the others to those under the temperature. A token stays if
// those that are better are together not enough, and if its own surprise is not too large.
DEVICE void cut(const Work &w) {
	Shared &m = w.m;
	uint gone = 0, n = 0;
	if (w.draw.reach != everything) {
		for (uint i = threadX(); i < m.left; i += threads) {
			m.weights[i] = weightOf(surprise(m.best, m.keys[i], plain, plainShift));
		}
		sync();
	}
	for (uint i = threadX(); i < m.left; i += threads, n++) {
		if (surprise(m.best, m.keys[i], plain, plainShift) > w.draw.most) {
			gone |= 1u << n;
		} else if (w.draw.reach != everything) {
			Sum s = better(m, i);
			gone |= s.before > 0 && s.before >= enough(w.draw.reach, s.all) ? 1u << n : 0;
		}
	}
	sync();
	n = 0;
	for (uint i = threadX(); i < m.left; i += threads, n++) {
		m.weights[i] = (gone >> n & 1) != 0 ? 0 : weightOf(surprise(m.best, m.keys[i], w.draw.factor, w.draw.shift));
	}
	sync();
}

// pick sets found to the token that the draw's point lies in, when weights lie side by side in the order of ids.
DEVICE void pick(const Work &w) {
	Shared &m = w.m;
	for (uint i = threadX(); i < m.left; i += threads) {
		if (m.weights[i] == 0) {
			continue;
		}
		Sum s = {0, 0};
		for (uint j = 0; j < m.left; j++) {
			s = {s.all + m.weights[j], s.before + (m.tokens[j] < m.tokens[i] ? m.weights[j] : 0)};
		}
		uint64_t point = pointOf(w.draw.random, s.all);
		if (s.before <= point && point < s.before + m.weights[i]) {
			m.found = m.tokens[i];
		}
	}
	sync();
}

KERNEL(sample, Args, threads) {
	Shared &m = *dynamicShared<Shared>();
	Draw d = at<const Draw>(a.draws)[blockY()];
	if (d.topK == 0) {
		return;
	}
	uint topK = lesser(d.topK, most), each = (a.width + a.parts - 1) / a.parts, first = blockX() * each;
	uint items = a.join != 0 ? a.parts * topK : first >= a.width ? 0 : lesser(each, a.width - first);
	Work w = {a, m, d, topK, items};
	gather(w, least(w, topK));
	if (a.join == 0) {
		return;
	}
	if (threadX() == 0) {
		m.found = 0;
		m.best = 0;
	}
	sync();
	for (uint i = threadX(); i < m.left; i += threads) {
		atomicMax(&m.best, m.keys[i]);
	}
	sync();
	cut(w);
	pick(w);
	if (threadX() == 0) {
		at<uint>(a.ids)[blockY()] = m.found;
		if (a.second != 0) {
			at<uint>(a.second)[blockY()] = m.found;
		}
	}
}
