package null

import (
	"math/rand/v2"
	"slices"
)

// shuffled is the commands in another order that the barriers allow: kernels stay between barriers, copies between
// barriers that are for copies too, and timestamps behind all that was before them.
func shuffled(commands []command, rng *rand.Rand) []command {
	to := make([]command, 0, len(commands))
	for from := 0; from < len(commands); {
		end := from
		for end < len(commands) && commands[end].barrier != all && commands[end].stamp == 0 {
			end++
		}
		to = append(to, mixed(commands[from:end], rng)...)
		if end < len(commands) {
			to = append(to, commands[end])
		}
		from = end + 1
	}
	return to
}

// mixed shuffles commands that have no barrier for copies between them.
func mixed(commands []command, rng *rand.Rand) []command {
	var to, now, copies []command
	shut := func() {
		rng.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
		to, now = append(to, now...), now[:0]
	}
	for _, c := range commands {
		switch {
		case c.kernel:
			now = append(now, c)
		case c.barrier == kernels:
			shut()
			to = append(to, c)
		default:
			copies = append(copies, c)
		}
	}
	shut()
	for _, c := range copies {
		to = slices.Insert(to, rng.IntN(len(to)+1), c)
	}
	return to
}
