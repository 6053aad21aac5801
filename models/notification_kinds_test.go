package models_test

import (
	"os"
	"strings"
	"testing"

	"weir/models"
)

func TestKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range models.NotificationKinds {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("docs/reference/notifications.md does not list %s", kind)
		}
	}
}

func TestSelects(t *testing.T) {
	for subscription, selected := range map[string]bool{"request.asked": true, "request.*": true, "*": true, "request": false, "request.approved": false, "": false} {
		if models.Selects(subscription, models.NotificationRequestAsked) != selected {
			t.Errorf("%q selects: %t", subscription, !selected)
		}
	}
}
