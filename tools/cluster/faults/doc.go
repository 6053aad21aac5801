// Package faults stands between a client and a real API server and does, when
// a test asks for it, what a bad day does: it refuses requests, delays them,
// loses the answers of what the API server has done, and cuts watches. Which
// requests are hit follows from the seed and the requests themselves, not
// from their timing.
//
// It must not know what the requests are for. It is for tests.
package faults
