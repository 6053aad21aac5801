package store

import "weir/models"

// MaxPrices is the maximum number of prices, so that all of them can be read at once.
const MaxPrices = 1000

// CreatePrice inserts a price.
func (q *Queries) CreatePrice(p *models.GPUPrice) error { return q.db.Create(p).Error }

// Prices lists all prices by model, billing model and the time from which they are valid.
func (q *Queries) Prices() (list []models.GPUPrice, err error) {
	return list, q.db.Order("model, billing, valid_from").Limit(MaxPrices).Find(&list).Error
}

// DeviceModels lists the models of all devices that are or were in the pool.
func (q *Queries) DeviceModels() (list []string, err error) {
	return list, q.db.Model(&models.Device{}).Distinct("model").Order("model").Limit(MaxPrices).Pluck("model", &list).Error
}
