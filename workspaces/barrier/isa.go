package barrier

// Facts of the PTX ISA, section 9.7.13.1 (bar, barrier), and of CUDA's thread blocks.
const (
	maxPhysical = 16   // barriers of a thread block
	maxThreads  = 1024 // of a thread block
	warpSize    = 32   // threads; a barrier counts whole warps
)
