package policies

import (
	"context"
	"strings"

	"weir/models"
)

// ByAddress finds the account with an address; who may read accounts may ask.
func (a *Accounts) ByAddress(ctx context.Context, actor Actor, address string) (models.User, error) {
	if err := a.access.Check(actor, Platform, "user", "read"); err != nil {
		return models.User{}, err
	}
	return a.store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(address)))
}
