package web

import (
	"context"
	"slices"

	"weir/models"
)

// Link is a name that leads somewhere.
type Link struct{ Label, Href string }

// tableColumns are columns of a table by their heads.
type tableColumns []tableColumn

type tableColumn struct {
	label  string
	number bool
	hidden bool // the head is only read aloud
}

func col(label string) tableColumns { return tableColumns{{label: label}} }

// num is a column of numbers.
func num(label string) tableColumns { return tableColumns{{label: label, number: true}} }

func hiddenCol(label string) tableColumns { return tableColumns{{label: label, hidden: true}} }

func actions(ctx context.Context) tableColumns { return hiddenCol(T(ctx, "Actions")) }

// when are columns that a table has on a condition.
func when(shown bool, list ...tableColumns) tableColumns {
	if !shown {
		return nil
	}
	return slices.Concat(list...)
}

func resourceColumns(ctx context.Context) (list tableColumns) {
	for _, a := range (models.Resources{}).Amounts() {
		list = append(list, num(TT(ctx, a.Label))...)
	}
	return list
}
