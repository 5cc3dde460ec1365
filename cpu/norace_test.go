//go:build !race

package cpu_test

const racing = false
