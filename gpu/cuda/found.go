package cuda

// Options say how a device is used.
type Options struct {
	Cache   string // folder for compiled kernels; empty: they are compiled anew each time
	Library string // file of the driver; empty: libcuda.so.1
}

// Found is the description of a card for people.
type Found struct {
	Name         string
	Major, Minor int // of the compute capability
	Driver       string
	Memory, Free int64 // bytes of the card's own memory; Free as the driver says now
	Processors   int
	Missing      error // what it lacks; nil: it can be used
}
