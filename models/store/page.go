package store

import "gorm.io/gorm"

// PageSize is the maximum number of rows of a page.
const PageSize = 200

// Page is at most Limit rows after the row with id After; the default is 50 and
// the maximum PageSize.
type Page struct {
	After int64
	Key   string // of that row, in a list with a sort key: its value when the row was read
	Limit int
}

func (p Page) limit() int {
	if p.Limit <= 0 {
		return 50
	}
	return min(p.Limit, PageSize)
}

// newest applies the page to rows in descending order of their ids.
func (p Page) newest(db *gorm.DB, id string) *gorm.DB {
	if p.After > 0 {
		db = db.Where(id+" < ?", p.After)
	}
	return db.Order(id + " DESC").Limit(p.limit())
}

// oldest applies the page to rows in ascending order of their ids.
func (p Page) oldest(db *gorm.DB, id string) *gorm.DB {
	return db.Where(id+" > ?", p.After).Order(id).Limit(p.limit())
}
