package requests_test

import (
	"testing"

	"weir/pool/pooltest"
)

// world is the common one, and what only these tests do in it.
type world struct{ *pooltest.World }

func each(t *testing.T, test func(t *testing.T, o *world)) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) { test(t, &world{w}) })
}
