package store

import (
	"time"

	"gorm.io/gorm/clause"

	"weir/models"
)

// LatenciesOf are the latencies of a provider that were measured since a time, by zone.
func (q *Queries) LatenciesOf(provider int64, since time.Time) (list []models.ProviderLatency, err error) {
	return list, q.db.Where("provider_id = ? AND measured_at >= ?", provider, since).Order("zone").Find(&list).Error
}

// LatenciesTo are the latencies to a client zone that were measured since a time.
func (q *Queries) LatenciesTo(zone string, since time.Time) (list []models.ProviderLatency, err error) {
	return list, q.db.Where("zone = ? AND measured_at >= ?", zone, since).Order("provider_id").Find(&list).Error
}

// SaveLatencies stores latencies in place of older ones.
func (q *Queries) SaveLatencies(list []models.ProviderLatency) error {
	if len(list) == 0 {
		return nil
	}
	return q.db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "provider_id"}, {Name: "zone"}},
		DoUpdates: clause.AssignmentColumns([]string{"micros", "measured_at"}),
	}).Create(&list).Error
}
