package web

import (
	"errors"
	"testing"

	"weir/models"
)

func TestFormRefuse(t *testing.T) {
	f := Form{Values: map[string]string{"name": "x"}, Version: 3}
	got := f.Refuse(models.InvalidFields(models.Field{Name: "name", Reason: models.Say("first")}, models.Field{Name: "name", Reason: models.Say("second")}))
	if got.Value("name") != "x" || got.Version != 3 || got.Errors["name"].String() != "first" {
		t.Errorf("a refused form came back as %+v", got)
	}
	if got := f.Refuse(errors.New("disk full at sector 7")); got.Message.String() != "Something went wrong. No changes were made." {
		t.Errorf("an internal error shows as %q", got.Message)
	}
}
