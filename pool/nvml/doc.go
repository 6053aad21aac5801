// Package nvml tells the pool what GPUs a machine has: through NVIDIA's
// management library where there is a driver, or from NVIDIA's own mocks of
// that library where GPUs are simulated. One reader, [Driver], serves both.
//
// It must not know what the GPUs are used for, who may use them, or how a
// report travels to the pool.
package nvml
