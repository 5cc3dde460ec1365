//go:build !linux

package uring

import (
	"errors"
	"os"
)

func openDirect(string) (*os.File, int) { return nil, 0 }

func resident(*os.File, int64, int) bool { return false }

func aligned([]byte, int) bool { return false }

type kernelRing struct{ engine }

func newKernelRing(int) (*kernelRing, error) { return nil, errors.New("this system has no io_uring") }

func (*kernelRing) detail() string { return "" }
