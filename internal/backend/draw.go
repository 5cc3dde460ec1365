package backend

// Uniform is number index of the random numbers of a position under a seed, in [0, 1), with 53 bits: a hash, so that
// nothing has to be carried from token to token. Number 0 picks the token.
func Uniform(seed, position, index uint64) float64 {
	h := mix(mix(mix(seed)^position) ^ index)
	return float64(h>>11) * 0x1p-53
}

// mix is the output function of SplitMix64, Steele et al., doi:10.1145/2660193.2660195: a bijection in which each
// bit of the input flips about half of the output's.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
