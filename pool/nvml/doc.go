// Package nvml is the GPUs of one machine: through NVIDIA's management
// library where there is a driver, or from NVIDIA's own mocks of that library
// where GPUs are simulated. One [Driver] serves both: it tells what there is
// and what was measured, collects the driver's errors, and brings devices to
// the sharing that is wanted (MIG instances, MPS daemons).
//
// It must not know what the GPUs are used for, who may use them, or how a
// report travels to the pool.
package nvml
