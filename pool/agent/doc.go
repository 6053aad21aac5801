// Package agent is the agent of a machine that lends GPUs. It enrolls, keeps a key,
// a certificate and a token in its state directory, sends heartbeats with the
// devices and their metrics, and applies the sharing modes of the responses.
//
// The portal runs a Loop for its own machine in its process.
//
// It must not know the database, shares, nor how GPUs are read.
package agent
