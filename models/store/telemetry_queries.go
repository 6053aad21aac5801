package store

import (
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"weir/models"
)

// SaveStates stores the last measurements of devices, unless newer ones are
// stored.
func (q *Queries) SaveStates(states []models.DeviceState) error {
	if len(states) == 0 {
		return nil
	}
	return q.db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "device_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"at", "utilisation", "memory_used_mib", "temperature", "power_mw", "processes"}),
		Where:     clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "device_states.at <= excluded.at"}}},
	}).CreateInBatches(&states, 100).Error
}

// RecordFault stores the last error that a device's driver reported. It changes no
// settings, so the version stays.
func (q *Queries) RecordFault(d models.Device, xid int64, at time.Time) error {
	q.changePool(d.ProviderID)
	return q.db.Model(&models.Device{}).Where("id = ?", d.ID).UpdateColumns(map[string]any{"xid": xid, "xid_at": at}).Error
}

// DeviceStates returns the last measurements, by device.
func (q *Queries) DeviceStates() (map[int64]models.DeviceState, error) {
	var list []models.DeviceState
	err := q.db.Find(&list).Error
	states := make(map[int64]models.DeviceState, len(list))
	for _, s := range list {
		states[s.DeviceID] = s
	}
	return states, err
}

// AddTelemetry adds buckets to the ring buffers: a bucket is merged with one of
// the same time, replaces an older one, and is dropped when a newer one is
// there.
func (q *Queries) AddTelemetry(list []models.Telemetry) error {
	if len(list) == 0 {
		return nil
	}
	sum := func(column string) clause.Expr {
		return gorm.Expr("CASE WHEN telemetry.at = excluded.at THEN telemetry." + column + " + excluded." + column + " ELSE excluded." + column + " END")
	}
	maximum := func(column string) clause.Expr {
		return gorm.Expr("CASE WHEN telemetry.at = excluded.at AND telemetry." + column + " > excluded." + column +
			" THEN telemetry." + column + " ELSE excluded." + column + " END")
	}
	set := map[string]any{"at": gorm.Expr("excluded.at"), "samples": sum("samples")}
	for _, name := range []string{"utilisation", "memory", "temperature", "power"} {
		set[name+"_sum"], set[name+"_max"] = sum(name+"_sum"), maximum(name+"_max")
	}
	return q.db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "device_id"}, {Name: "step"}, {Name: "slot"}},
		DoUpdates: clause.Assignments(set),
		Where:     clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "telemetry.at <= excluded.at"}}},
	}).CreateInBatches(&list, 100).Error
}

// Telemetry lists a device's buckets of one step that begin after a time, oldest
// first.
func (q *Queries) Telemetry(device, step int64, after time.Time) (list []models.Telemetry, err error) {
	return list, q.db.Where("device_id = ? AND step = ? AND at > ?", device, step, after).Order("at").Find(&list).Error
}
