package projects_test

import (
	"testing"
	"time"

	"weir/pool/pooltest"
)

// world is the common one, and what only these tests do in it.
type world struct{ *pooltest.World }

func each(t *testing.T, test func(t *testing.T, o *world)) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) { test(t, &world{w}) })
}

// example is the world with the common example in it.
type example struct {
	*world
	*pooltest.Example
}

func newExample(t *testing.T, o *world) *example {
	t.Helper()
	return &example{o, o.NewExample(t)}
}

func eachExample(t *testing.T, test func(t *testing.T, h *example)) {
	each(t, func(t *testing.T, o *world) { test(t, newExample(t, o)) })
}

const day = 24 * time.Hour
