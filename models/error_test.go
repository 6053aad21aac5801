package models_test

import (
	"errors"
	"fmt"
	"testing"

	"weir/models"
)

func TestKindOf(t *testing.T) {
	for want, err := range map[models.Kind]error{
		"":                    nil,
		models.KindInternal:   errors.New("broken"),
		models.KindNotFound:   models.NotFound("project"),
		models.KindNoCapacity: fmt.Errorf("launch: %w", models.NoCapacity("", "The queue is full.")),
	} {
		if got := models.KindOf(err); got != want {
			t.Errorf("%v is %q, not %q", err, got, want)
		}
	}
}
