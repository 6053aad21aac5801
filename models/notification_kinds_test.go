package models_test

import (
	"os"
	"strings"
	"testing"

	"weir/models"
)

func TestKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range models.NotificationKinds {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("docs/operating.md does not list %s", kind)
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
