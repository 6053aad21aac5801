package handlers

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"weir/policies"
	"weir/web"
)

// accountID reads the address of an account, or its number, and gives the
// number; 0 where nothing was typed. A form cannot offer everybody.
func (a *App) accountID(ctx context.Context, f *form, name string) int64 {
	text := strings.TrimSpace(f.text(name))
	if !strings.Contains(text, "@") {
		return f.number(name)
	}
	u, err := a.Accounts.ByAddress(ctx, actorOf(ctx), text)
	if err != nil {
		f.problems.Add(name, "has no account here; an administrator can create one")
	}
	return u.ID
}

// numbers reads whole numbers that are separated by commas or spaces.
func (f *form) numbers(name string) (list []int64) {
	for _, text := range strings.FieldsFunc(f.text(name), func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			f.problems.Add(name, "must be numbers of projects, separated by commas")
			return nil
		}
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// projectChoices are projects that the reader may see, as many as a page has,
// and those that are chosen already, which may be foreign. more tells that
// there are others.
func (a *App) projectChoices(ctx context.Context, actor policies.Actor, chosen []int64) (list []web.Choice, more bool, err error) {
	projects, more, err := a.Ledger.ProjectNames(ctx, actor, chosen)
	seen := map[int64]bool{}
	for _, p := range projects {
		seen[p.ID] = true
		list = append(list, web.Choice{ID: p.ID, Label: p.Name})
	}
	for _, id := range chosen {
		if !seen[id] {
			list = append(list, web.Choice{ID: id, Label: "№ " + strconv.FormatInt(id, 10)})
		}
	}
	return list, more, err
}
