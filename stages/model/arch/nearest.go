package arch

// nearest is the known name to which the fewest letters have to be changed, put in or left out; of equals one
// with a number at the end, if name has one there (another version), then the shortest, then the first.
// A name that begins like another is near to it: most families keep theirs.
func nearest(name string) string {
	const most = 40 // a file can make a name as long as it likes
	name = name[:min(len(name), most)]
	best, least := "", 0
	for _, known := range Names() {
		d := distance(name, known) - 2*common(name, known)
		closer := len(known) < len(best)
		if numbered(name) && numbered(known) != numbered(best) {
			closer = numbered(known)
		}
		if best == "" || d < least || d == least && closer {
			best, least = known, d
		}
	}
	return best
}

// numbered says whether a name ends in a digit.
func numbered(name string) bool {
	return name != "" && '0' <= name[len(name)-1] && name[len(name)-1] <= '9'
}

// common is how many bytes two names have in common at the beginning.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// distance is Levenshtein's, of bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := corner
			if a[i] != b[j] {
				changed++
			}
			corner = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
