// Package nvml manages the GPUs of one machine with NVIDIA's management library, or
// simulated GPUs with NVIDIA's mocks of that library. A [Driver] reports devices,
// metrics and errors, and applies sharing modes (MIG instances, MPS daemons).
//
// It must not know what the GPUs are used for, nor how reports are sent.
package nvml
