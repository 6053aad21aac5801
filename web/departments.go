package web

import (
	"context"

	"weir/models"
)

// DepartmentsView lists departments.
type DepartmentsView struct {
	Rows []DepartmentRow
	Next string // address of the next page, empty on the last
}

// DepartmentRow is a department with the use of its members.
type DepartmentRow struct {
	Department models.Department
	Sums       models.DepartmentSums
}

// DepartmentFormView creates a department or, with an ID, renames it. Field:
// name.
type DepartmentFormView struct {
	Form    Form
	ID      int64
	Name    string
	Blocked error // why it cannot be deleted
}

func (v DepartmentFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Create department")
	}
	return T(ctx, "Rename %s", v.Name)
}

func (v DepartmentFormView) action() string { return itemPath("/departments", v.ID) }

func departmentPath(n int64) string { return "/departments/" + number(n) }

// ConfirmDeleteDepartment asks for confirmation before a department is deleted;
// blocked says why it cannot be.
func ConfirmDeleteDepartment(d models.Department, blocked error) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Delete department %s?", d.Name),
		Blocked:      blocked,
		Consequences: []models.Text{models.Say("People can no longer be assigned to it.")},
		Button:       models.Say("Delete department"),
		Action:       departmentPath(d.ID) + "/delete",
		Back:         "/departments", Version: d.Version,
	}
}
