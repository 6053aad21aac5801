package models

// CountDecisions counts the decisions so far by their outcome. None is ever
// deleted, so a count only grows.
func (q *Queries) CountDecisions() (map[string]int64, error) {
	var rows []struct {
		Outcome string
		N       int64
	}
	err := q.db.Model(&Decision{}).Select("outcome, COUNT(*) AS n").Group("outcome").Scan(&rows).Error
	counts := map[string]int64{}
	for _, r := range rows {
		counts[r.Outcome] = r.N
	}
	return counts, err
}
