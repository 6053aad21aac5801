package store

import (
	"gorm.io/gorm"

	"weir/models"
)

// Curators lists the curators of the public directories, by id.
func (q *Queries) Curators(page Page) (list []models.CuratorView, err error) {
	return list, page.oldest(q.curators(), "curators.id").Scan(&list).Error
}

// Curator finds a curator.
func (q *Queries) Curator(id int64) (c models.CuratorView, err error) {
	return c, found(q.curators().Where("curators.id = ?", id).Take(&c).Error, "curator")
}

func (q *Queries) curators() *gorm.DB {
	return q.db.Table("curators").Select("curators.*, COALESCE(users.name, '') AS user_name, COALESCE(users.email, '') AS email, COALESCE(projects.name, '') AS project_name").
		Joins("LEFT JOIN users ON users.id = curators.user_id").Joins("LEFT JOIN projects ON projects.id = curators.project_id")
}

// CreateCurator inserts a curator.
func (q *Queries) CreateCurator(c *models.Curator) error {
	q.changeCurator(*c)
	err := q.db.Create(c).Error
	if Duplicate(err) {
		return models.Conflict("This is a curator of the directory already.")
	}
	return err
}

// DeleteCurator removes a curator.
func (q *Queries) DeleteCurator(c models.Curator) error {
	q.changeCurator(c)
	return q.deleted(q.db.Delete(&models.Curator{}, c.ID), "curator")
}

// changeCurator ends the rights that depend on a curator.
func (q *Queries) changeCurator(c models.Curator) {
	if c.UserID != nil {
		q.Revoke("user", *c.UserID)
	} else {
		q.Revoke("project", *c.ProjectID)
	}
}

// curated adds the public directories that members of a project curate.
func (q *Queries) curated(projectID int64, members []int64, list []models.DirectoryUser, at map[int64]int) error {
	var rows []struct {
		Directory string
		MemberID  int64
	}
	err := q.db.Table("curators").Select("DISTINCT curators.directory, members.id AS member_id").
		Joins("JOIN members ON members.user_id = curators.user_id OR members.project_id = curators.project_id").
		Where("members.project_id = ? AND members.id IN ?", projectID, members).Order("curators.directory").Scan(&rows).Error
	for _, r := range rows {
		if i, ok := at[r.MemberID]; ok {
			list[i].Curates = append(list[i].Curates, r.Directory)
		}
	}
	return err
}
