// Package occupancy is a pool in motion: a snapshot on which demands are
// placed and from which holders leave, one after the other.
//
// Those who step through time, forwards from now or through what has been,
// place on it thousands of times. So it remembers what each device has free
// and asks [placement.Place] only about nodes that could do. Its answers are
// those of Place on the whole snapshot.
//
// It must not know the time, in which order anything happens, or why.
package occupancy
