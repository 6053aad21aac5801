// Package faults is a proxy between a client and a real API server that
// injects faults for tests: it refuses requests, delays them, loses responses
// of completed requests, and breaks watches. The affected requests depend on
// the seed and the requests only, not on timing.
//
// It must not know what the requests are for. It is for tests.
package faults
