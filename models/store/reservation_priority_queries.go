package store

import (
	"time"

	"weir/models"
)

// MovableReservations lists the reservations that a request with a higher score may change
// in a span, oldest first: those that have not started and whose QoS level allows it, and
// preemptible ones.
func (q *Queries) MovableReservations(from, until time.Time) (list []models.Reservation, err error) {
	return list, q.db.Where("ended_at IS NULL AND starts_at < ? AND ends_at > ? AND outcome <> 'partial'", until, from).
		Where("(state = ? AND qos <> ?) OR qos = ?", models.ReservationGranted, models.QoSGuaranteed, models.QoSPreemptible).
		Order("id").Limit(1000).Find(&list).Error
}

// NoShows lists when reservations of users expired because they were not used, since a
// moment.
func (q *Queries) NoShows(since time.Time, users ...int64) (map[int64][]time.Time, error) {
	var list []struct {
		UserID  int64
		EndedAt time.Time
	}
	err := q.db.Model(&models.Reservation{}).
		Where("user_id IN ? AND state = ? AND ended_at > ?", users, models.ReservationExpired, since).
		Order("ended_at").Limit(1000 * len(users)).Find(&list).Error
	of := map[int64][]time.Time{}
	for _, r := range list {
		of[r.UserID] = append(of[r.UserID], r.EndedAt)
	}
	return of, err
}

// QuotaCores is Σ of the GPU cores of the quotas of projects whose period of use is not
// over; an unlimited quota counts as given.
func (q *Queries) QuotaCores(unlimited int64) (sum int64, err error) {
	const cores = "CASE WHEN quota_gpu_cores >= ? THEN ? ELSE quota_gpu_cores END"
	return sum, q.db.Table("projects").Select("COALESCE(CAST(SUM("+cores+") AS BIGINT), 0)",
		models.Unlimited, unlimited).Where("ends_at IS NULL OR ends_at > ?", q.Now()).Scan(&sum).Error
}
