package store

import "time"

// Validity limits how long a cached value may be used.
type Validity struct {
	Keys []string // revocation keys on which it depends

	// Topics are what else it depends on. Changes of topics on other servers arrive
	// shortly after the commit, so a value with topics is for display only.
	Topics []string

	// Until is when the value changes by itself, such as an expiry; zero: never.
	Until time.Time

	// MaxAge is a bound of the age shorter than a minute; 0: none.
	MaxAge time.Duration
}

// EndAt limits v to the time t, if there is one.
func (v *Validity) EndAt(t *time.Time) {
	if t != nil && (v.Until.IsZero() || t.Before(v.Until)) {
		v.Until = *t
	}
}
