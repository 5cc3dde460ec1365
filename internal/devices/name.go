package devices

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Kind is the part of a device's name before a colon.
type Kind string

// The kinds of devices.
const (
	CPU    Kind = "cpu"
	CUDA   Kind = "cuda"
	Vulkan Kind = "vulkan"
	Auto   Kind = "auto"   // the best card that Vulkan has, else the processor
	Member Kind = "member" // what a member of a cluster lends
)

// Wanted lists the names, for errors.
const Wanted = "want cpu, cuda, cuda:N, cuda:N,M, cuda:N+M, vulkan, vulkan:N, vulkan:N,M, auto or member:HOST:PORT"

// Name is what a device's name means.
type Name struct {
	Kind Kind
	// Cards are the cards' numbers, of each team that computes layers together; nil: none were given.
	Cards [][]int
	// Members are the addresses where members of a cluster take others.
	Members []string
}

// Parse reads a name: a kind, and behind a colon numbers of one card or several. Cards that are joined by a plus
// compute each layer together, others layers of their own. Its error goes on behind what the name was given by.
func Parse(text string) (n Name, err error) {
	kind, list, numbered := strings.Cut(text, ":")
	n.Kind = Kind(kind)
	switch {
	case n.Kind == Member:
		n.Members, err = addresses(list)
		return n, err
	case !slices.Contains([]Kind{CPU, CUDA, Vulkan, Auto}, n.Kind), numbered && n.Kind != CUDA && n.Kind != Vulkan:
		return n, fmt.Errorf("is %q: %s", text, Wanted)
	case !numbered:
		return n, nil
	}
	if n.Cards, err = numbers(list); err != nil {
		return n, fmt.Errorf("is %q: %s", text, Wanted)
	}
	if n.Kind == Vulkan && strings.Contains(list, "+") {
		return n, fmt.Errorf("is %q: only cards of CUDA compute a layer together: use cuda:N+M, or vulkan:N,M, of which each "+
			"computes some layers", text)
	}
	return n, nil
}

// addresses reads addresses of members, separated by commas. Each may be named once.
func addresses(list string) (all []string, err error) {
	for addr := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" || slices.Contains(all, addr) {
			return nil, fmt.Errorf("names %q: want member:HOST:PORT, more of them behind commas: where members take each other",
				addr)
		}
		all = append(all, addr)
	}
	return all, nil
}

// numbers reads numbers of cards, separated by commas, or, of cards that compute each layer together, by a plus. Each
// may be named once.
func numbers(list string) (all [][]int, err error) {
	var named []int
	for team := range strings.SplitSeq(list, ",") {
		var cards []int
		for text := range strings.SplitSeq(team, "+") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || slices.Contains(named, n) {
				return nil, fmt.Errorf("%q is no number of another card", text)
			}
			cards, named = append(cards, n), append(named, n)
		}
		all = append(all, cards)
	}
	return all, nil
}
