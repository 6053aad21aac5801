package handlers

import (
	"time"

	"weir/models"
)

func convert[T, R any](rows []T, show func(T) R) []R {
	return models.Map(rows, show)
}

// unchanged shows rows as they are.
func unchanged[T any](row T) T { return row }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
