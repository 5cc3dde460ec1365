package system

import "golang.org/x/sys/cpu"

// DotProducts says whether the processor has SDOT, a product of four bytes for each word.
func DotProducts() bool { return cpu.ARM64.HasASIMDDP }
