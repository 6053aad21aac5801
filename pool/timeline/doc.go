// Package timeline tells when what waits for the pool can be placed: it steps
// from now through the expected ends of those who hold something, gives what
// they leave to who waits, in the order of the queue, and notes when.
//
// A later request goes before an earlier one where it fits, as in the live
// queue, unless the earlier one has come to keep room for itself.
//
// It is pure. It must not know the clock, the database, by what rule a holder
// leaves, or the words in which an estimate is told. It foresees neither new
// requests nor machines that come and go, so an estimate is an estimate.
package timeline
