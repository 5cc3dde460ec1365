//go:build !amd64 || purego

package probe

func readStreams(p *byte, stride, n int) { readWords(p, stride, n) }

func multiplier(string) (burst func(rounds int), ops int) { return nil, 0 }
