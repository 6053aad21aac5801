package store

import (
	"fmt"
	"strings"

	"gorm.io/gorm"

	"weir/models"
)

// countBy counts rows by the value of a column; count is * or an expression
// such as DISTINCT user_id.
func countBy[K comparable](rows *gorm.DB, column, count string) (map[K]int64, error) {
	var list []struct {
		Key K
		N   int64
	}
	err := rows.Select(column + " AS key, COUNT(" + count + ") AS n").Group(column).Scan(&list).Error
	counts := make(map[K]int64, len(list))
	for _, r := range list {
		counts[r.Key] = r.N
	}
	return counts, err
}

// namesByID maps the ids of rows to their names.
func namesByID(rows *gorm.DB) (map[int64]string, error) {
	var list []struct {
		ID   int64
		Name string
	}
	err := rows.Scan(&list).Error
	names := make(map[int64]string, len(list))
	for _, r := range list {
		names[r.ID] = r.Name
	}
	return names, err
}

// exists reports whether there is a row.
func exists(rows *gorm.DB) (bool, error) {
	var found []int
	err := rows.Select("1").Limit(1).Scan(&found).Error
	return len(found) > 0, err
}

// sumColumns selects the sums of the columns of a [Resources] with a prefix; a sum
// with an unlimited amount is Unlimited.
func sumColumns(prefix string) string {
	var columns []string
	for _, a := range (models.Resources{}).Amounts() {
		columns = append(columns,
			fmt.Sprintf("CAST(CASE WHEN SUM(%[1]s%[2]s) > %[3]d THEN %[4]d ELSE COALESCE(SUM(%[1]s%[2]s), 0) END AS BIGINT) AS %[2]s",
				prefix, a.Name, models.MaxAmount, models.Unlimited))
	}
	return strings.Join(columns, ", ")
}
