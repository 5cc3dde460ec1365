package lang

// Multiples is the language of the decimal numbers, as JSON spells them and without exponents, that are multiples of
// m/10^places.
func Multiples(m, places int, left *Budget) (*DFA, error) {
	a := cut([]rune("-./0123456789:"), func(dst []byte, r rune) []byte {
		if r >= '-' && r <= '9' && r != '/' {
			return append(dst, byte(r))
		}
		return dst
	})
	if states := 4 + m*(places+3); states > left.States {
		return nil, &Exhausted{"states"}
	} else if err := left.Take(states * a.classes); err != nil {
		return nil, err
	}
	x := multiples{DFA: &DFA{alphabet: a}, m: m, places: places}
	x.states()
	x.digits()
	for q := range m {
		x.arrow(x.parts[places][q], '0', x.parts[places+1][q])
		x.arrow(x.parts[places+1][q], '0', x.parts[places+1][q])
		x.arrow(x.whole[q], '.', x.parts[0][q])
		unit := 1 // what is lacking: a number with i digits after the point counts units of so many m
		for i := places + 1; i >= 0; i-- {
			if i < places {
				unit = unit * 10 % m
			}
			if i > 0 {
				x.final[x.parts[i][q]] = q*unit%m == 0
			}
		}
		x.final[x.whole[q]] = q*unit%m == 0
	}
	x.arrow(x.begin, '-', x.signed)
	x.arrow(x.zero, '.', x.parts[0][0])
	x.final[x.zero] = true
	return x.trim(), nil
}

// multiples has a state for where in a number one is, and the remainder by m of all digits so far as one integer.
type multiples struct {
	*DFA
	m, places           int
	begin, signed, zero int32
	whole               []int32
	parts               [][]int32 // by digits after the point; the last: beyond places, only zeros
}

func (x *multiples) states() {
	x.begin, x.signed, x.zero = x.add(), x.add(), x.add()
	x.whole, x.parts = make([]int32, x.m), make([][]int32, x.places+2)
	for r := range x.m {
		x.whole[r] = x.add()
	}
	for i := range x.parts {
		x.parts[i] = make([]int32, x.m)
		for r := range x.m {
			x.parts[i][r] = x.add()
		}
	}
}

func (x *multiples) arrow(from int32, r rune, to int32) {
	x.next[int(from)*x.classes+int(x.class[x.interval(r)])] = to
}

func (x *multiples) digits() {
	for digit := range 10 {
		r, to := rune('0'+digit), x.whole[digit%x.m]
		if digit == 0 {
			to = x.zero
		}
		x.arrow(x.begin, r, to)
		x.arrow(x.signed, r, to)
		for q := range x.m {
			next := (q*10 + digit) % x.m
			x.arrow(x.whole[q], r, x.whole[next])
			for i := range x.places {
				x.arrow(x.parts[i][q], r, x.parts[i+1][next])
			}
		}
	}
}
