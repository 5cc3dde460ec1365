//go:build !amd64 || purego

package cpu

import "runtime"

func pause() { runtime.Gosched() }
