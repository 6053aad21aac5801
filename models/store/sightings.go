package store

import "time"

// sightings remembers when each name's present value was first seen.
type sightings[T comparable] map[string]sighting[T]

type sighting[T comparable] struct {
	value T
	at    time.Duration // of Store.Elapsed
}

// unchanged is for how long the value of a name has been the present one, as far as was seen.
func (s sightings[T]) unchanged(name string, value T, now time.Duration) time.Duration {
	if last, known := s[name]; known && last.value == value {
		return now - last.at
	}
	s[name] = sighting[T]{value, now}
	return 0
}
