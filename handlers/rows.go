package handlers

import "time"

// unchanged shows rows as they are.
func unchanged[T any](row T) T { return row }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
