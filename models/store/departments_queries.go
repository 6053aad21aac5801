package store

import "weir/models"

// CreateDepartment inserts d; a taken name is a Conflict.
func (q *Queries) CreateDepartment(d *models.Department) error {
	q.Touch("departments")
	return nameTaken(q.db.Create(d).Error, "department", d.Name)
}

// UpdateDepartment writes d if its version is still d.Version.
func (q *Queries) UpdateDepartment(d *models.Department) error {
	q.Touch("departments")
	return nameTaken(q.update(d, &d.Version, d.ID, "department"), "department", d.Name)
}

// DeleteDepartment removes a department that has no people.
func (q *Queries) DeleteDepartment(id int64) error {
	q.Touch("departments")
	return q.deleted(q.db.Where("id = ?", id).Delete(&models.Department{}), "department")
}

// Department finds a department.
func (q *Queries) Department(id int64) (d models.Department, err error) {
	return d, found(q.db.Take(&d, id).Error, "department")
}

// Departments lists departments by id.
func (q *Queries) Departments(page Page) (list []models.Department, err error) {
	return list, page.oldest(q.db, "id").Find(&list).Error
}

// MaxDepartments is the maximum number of departments, so that a form can offer
// all of them.
const MaxDepartments = 1000

// DepartmentsByName lists all departments in the order of their names.
func (q *Queries) DepartmentsByName() (list []models.Department, err error) {
	return list, q.db.Order("name, id").Limit(MaxDepartments).Find(&list).Error
}

// CountDepartments counts all departments.
func (q *Queries) CountDepartments() (n int64, err error) {
	return n, q.db.Model(&models.Department{}).Count(&n).Error
}

// DepartmentsByNames finds departments by their exact names.
func (q *Queries) DepartmentsByNames(names []string) (list []models.Department, err error) {
	return list, q.db.Where("name IN ?", names).Find(&list).Error
}

// DepartmentNames maps ids of departments to names.
func (q *Queries) DepartmentNames(ids []int64) (map[int64]string, error) {
	return names(q.db.Model(&models.Department{}).Select("id, name"), "id", ids)
}

// CountDepartmentPeople counts the accounts in a department.
func (q *Queries) CountDepartmentPeople(id int64) (n int64, err error) {
	return n, q.db.Model(&models.User{}).Where("department_id = ?", id).Count(&n).Error
}

// DepartmentSums adds up several departments with a fixed number of queries.
func (q *Queries) DepartmentSums(ids []int64) (map[int64]models.DepartmentSums, error) {
	people, err := countBy[int64](q.db.Model(&models.User{}).Where("department_id IN ?", ids), "department_id", "*")
	if err != nil {
		return nil, err
	}
	projects, err := countBy[int64](q.db.Table("members").Joins("JOIN users ON users.id = members.user_id").
		Where("users.department_id IN ? AND members.removed_at IS NULL", ids), "users.department_id", "DISTINCT members.project_id")
	if err != nil {
		return nil, err
	}
	inUse, err := inUseBy(q.db.Joins("JOIN users ON users.id = holders.user_id").Where("users.department_id IN ?", ids), "users.department_id")
	sums := make(map[int64]models.DepartmentSums, len(ids))
	for _, id := range ids {
		sums[id] = models.DepartmentSums{People: people[id], Projects: projects[id], InUse: inUse[id]}
	}
	return sums, err
}
