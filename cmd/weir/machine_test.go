package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
)

// The check of environments is repeated, whatever fails, until none is left.
func TestCheckEnvironments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := []struct {
			unchecked int
			err       error
		}{{2, nil}, {0, errors.New("the database is away")}, {1, nil}, {0, nil}}
		checks := 0
		checkEnvironments(t.Context(), slog.New(slog.DiscardHandler), 2, func(context.Context) (int, error) {
			checks++
			return results[checks-1].unchecked, results[checks-1].err
		})
		if checks != len(results) {
			t.Errorf("%d checks, want %d", checks, len(results))
		}
		checkEnvironments(t.Context(), slog.New(slog.DiscardHandler), 0, func(context.Context) (int, error) {
			t.Error("checked without need")
			return 0, nil
		})
	})
}
