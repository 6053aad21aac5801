// Package agent speaks for a machine that lends GPUs: it enrols with a code,
// keeps a key, a certificate and a token in its state directory, and then
// tells the portal every few seconds what GPUs there are and what they do, and
// does what it is told of how they shall be shared.
//
// A loop needs no more of the portal than one method; the portal runs one for
// its own machine within its process.
//
// It must not know the database, nor what shares are given away, nor how GPUs
// are read.
package agent
