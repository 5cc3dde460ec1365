package cuda

// Options are how a device is used.
type Options struct {
	Cache   string // folder for compiled kernels; empty: they are compiled anew each time
	Library string // file of the driver; empty: libcuda.so.1
}

// Found is a card as a person sees it.
type Found struct {
	Name         string
	Major, Minor int // of the compute capability
	Driver       string
	Memory, Free int64 // bytes of its own; Free as the driver sees it now
	Processors   int
	Missing      error // what it lacks; nil: it can be used
}
