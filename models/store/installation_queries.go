package store

import (
	"time"

	"weir/models"
)

// Installation returns which installation this database is of.
func (q *Queries) Installation() (in models.Installation, err error) {
	return in, found(q.db.Take(&in, 1).Error, "installation")
}

// skippedFileOperations is more than the file operations that there can have been since a backup.
const skippedFileOperations = 1 << 40

// skipFileOperations leaves out the ids of operations after the backup: what they have put in the trash and among
// the versions is named by them, and there still.
func (q *Queries) skipFileOperations() error {
	if q.postgres {
		return q.db.Exec(`SELECT setval(pg_get_serial_sequence('file_operations', 'id'),
			nextval(pg_get_serial_sequence('file_operations', 'id')) + CAST(? AS BIGINT))`, skippedFileOperations).Error
	}
	res := q.db.Exec("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'file_operations'", skippedFileOperations)
	if res.Error != nil || res.RowsAffected > 0 {
		return res.Error
	}
	return q.db.Exec("INSERT INTO sqlite_sequence (name, seq) VALUES ('file_operations', ?)", skippedFileOperations).Error
}

// NextGeneration makes this database, restored from a backup, a generation of its own: no
// session, visit or password link is valid any more, no server has a lease, and nothing that
// was queued for sending is sent a second time. Two restores of one backup are different
// generations: the number is the time in milliseconds since 1970.
func (q *Queries) NextGeneration(backup time.Time) (in models.Installation, err error) {
	if in, err = q.Installation(); err != nil {
		return in, err
	}
	in.Generation, in.BackupAt, in.RestoredAt = max(in.Generation+1, q.Now().UnixMilli()), new(backup.UTC()), new(q.Now())
	if err := q.db.Save(&in).Error; err != nil {
		return in, err
	}
	for _, table := range []any{&models.Session{}, &models.Visit{}, &IdempotencyKey{}, &Server{}, &Leader{}} {
		if err := q.db.Where("1 = 1").Delete(table).Error; err != nil {
			return in, err
		}
	}
	if err := q.db.Where("purpose <> ?", "invitation").Delete(&models.OneTimeToken{}).Error; err != nil {
		return in, err
	}
	if err := q.skipFileOperations(); err != nil {
		return in, err
	}
	why := models.Say("The database was restored from a backup before it was sent.")
	return in, q.db.Model(&models.Delivery{}).Where("finished_at IS NULL").Updates(map[string]any{
		"state": models.DeliveryGivenUp, "problem": why, "lease_until": nil, "finished_at": in.RestoredAt}).Error
}
