package store

import (
	"database/sql"

	"gorm.io/gorm"

	"weir/models"
)

// TellHolder adds an event to the history of a holder, and returns it.
func (q *Queries) TellHolder(id int64, event models.Text) (h models.HolderView, err error) {
	list, err := q.tellHolders(q.db.Where("holder_id = ?", id), event)
	if err == nil && len(list) == 0 {
		err = models.NotFound("workspace")
	}
	if err != nil {
		return h, err
	}
	return models.HolderView{Holder: list[0].Holder(), ObjectID: list[0].ID, Name: list[0].Name}, nil
}

// TellHoldersAt adds an event to the history of the holders of open shares at a provider.
func (q *Queries) TellHoldersAt(provider int64, event models.Text) error {
	return q.tellHoldersOn("d.provider_id = @id", provider, event)
}

// TellHoldersOn adds an event to the history of the holders of open shares of a device,
// optionally including the MIG instances of a GPU.
func (q *Queries) TellHoldersOn(device int64, instances bool, event models.Text) error {
	if instances {
		return q.tellHoldersOn("(d.id = @id OR d.parent_id = @id)", device, event)
	}
	return q.tellHoldersOn("d.id = @id", device, event)
}

// tellHoldersOn adds an event to the history of the holders of open shares of some
// devices d.
func (q *Queries) tellHoldersOn(devices string, id int64, event models.Text) error {
	_, err := q.tellHolders(q.db.Where(`holder_id IN (SELECT s.holder_id FROM shares s JOIN devices d ON d.id = s.device_id
		WHERE `+devices+` AND s.until_at IS NULL)`, sql.Named("id", id)), event)
	return err
}

// tellHolders adds an event to the history of some holders, all of which are workspaces.
func (q *Queries) tellHolders(which *gorm.DB, event models.Text) (list []models.Workspace, err error) {
	if err := which.Order("id").Find(&list).Error; err != nil {
		return nil, err
	}
	for i := range list {
		if err := q.AddEvent(&list[i], event); err != nil {
			return nil, err
		}
	}
	return list, nil
}
