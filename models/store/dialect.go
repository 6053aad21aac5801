package store

import "fmt"

// milliseconds is SQL for the milliseconds since 1970 of a time in a column, cut off.
func (q *Queries) milliseconds(column string) string {
	if q.postgres {
		return "CAST(FLOOR(EXTRACT(EPOCH FROM " + column + ") * 1000) AS BIGINT)"
	}
	return fmt.Sprintf("(CAST(strftime('%%s', substr(%[1]s, 1, 19)) AS INTEGER) * 1000 + "+
		"CAST(CAST(substr(%[1]s, 20, 4) AS REAL) * 1000 + 0.5 AS INTEGER))", column)
}

func (q *Queries) least(a, b string) string {
	if q.postgres {
		return "LEAST(" + a + ", " + b + ")"
	}
	return "MIN(" + a + ", " + b + ")"
}

func (q *Queries) greatest(a, b string) string {
	if q.postgres {
		return "GREATEST(" + a + ", " + b + ")"
	}
	return "MAX(" + a + ", " + b + ")"
}

// hourAfter is SQL for the time an hour after that in a column, of a whole hour.
func (q *Queries) hourAfter(column string) string {
	if q.postgres {
		return "(" + column + " + INTERVAL '1 hour')"
	}
	return "strftime('%Y-%m-%d %H:%M:%S+00:00', " + column + ", '+1 hour')"
}

// secondsUntil is SQL for the seconds from a time, its parameter, until the time
// in a column.
func (q *Queries) secondsUntil(column string) string {
	if q.postgres {
		return "CAST(EXTRACT(EPOCH FROM " + column + " - CAST(? AS TIMESTAMPTZ)) AS DOUBLE PRECISION)"
	}
	return "(julianday(" + column + ") - julianday(?)) * 86400"
}
