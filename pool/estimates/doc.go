// Package estimates estimates when queued requests can be placed: it steps from
// now through the expected ends of the shares in use, and places what fits
// then, in the order of the queue.
//
// Requests whose backfill reservation has begun block later ones for the same
// models of devices.
//
// It is pure. It must not know the clock, the database, why a share ends, or
// the texts that describe an estimate. It does not foresee new requests or
// changes of the machines.
package estimates
