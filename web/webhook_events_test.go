package web

import (
	"strings"
	"testing"

	"weir/models"
)

// Each event that a webhook can subscribe to has a box with words, in a group with a title.
func TestEventChoices(t *testing.T) {
	ctx := With(t.Context(), Page{Lang: models.English})
	boxes := map[string]string{}
	for _, g := range eventChoices(ctx, Form{Values: map[string]string{"events": "request.* strange.*"}}) {
		if g.Title == "" {
			t.Errorf("a group without a title: %+v", g)
		}
		for _, b := range g.Boxes {
			boxes[b.Event] = b.Label
			if chosen := b.Event == "request.*" || b.Event == "strange.*"; b.On != chosen {
				t.Errorf("%s: ticked %t", b.Event, b.On)
			}
		}
	}
	for _, kind := range models.NotificationKinds {
		object, _, _ := strings.Cut(kind, ".")
		if boxes[kind] == "" || boxes[object+".*"] == "" {
			t.Errorf("%s has no box with words", kind)
		}
	}
	if _, shown := boxes["strange.*"]; !shown {
		t.Error("what is chosen already has no box")
	}
}
