//go:build !linux

package uring

import "errors"

type kernelRing struct{ engine }

// howToAllow is empty: nothing gives this system io_uring.
const howToAllow = ""

func newKernelRing(int) (*kernelRing, error) { return nil, errors.New("this system has no io_uring") }

func (*kernelRing) detail() string { return "" }
