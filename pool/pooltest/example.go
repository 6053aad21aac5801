package pooltest

import (
	"testing"

	"weir/models"
)

// Example is a project with people: a manager, a member, somebody who is in
// nothing, and 400 GPU cores that lend.
type Example struct {
	Vision                models.Project
	Lead, Engineer        models.Role
	Boss, Ann, Eve        models.User
	BossMember, AnnMember models.Member
}

// NewExample adds the example to the world.
func (w *World) NewExample(t *testing.T) *Example {
	t.Helper()
	e := &Example{}
	w.Enlist(t, Machine(4))
	e.Vision = w.NewProject(t, "vision", models.Resources{GPUCores: 200, GPUMemoryMiB: 200_000, CPUMilli: 8000})
	e.Lead = w.NewRole(t, e.Vision.ID, "lead", "manager", Cores(20))
	e.Engineer = w.NewRole(t, e.Vision.ID, "engineer", "member", models.Resources{GPUCores: 50, CPUMilli: 1000})
	e.BossMember, e.Boss = w.NewMember(t, e.Lead)
	e.AnnMember, e.Ann = w.NewMember(t, e.Engineer)
	e.Eve = w.NewPerson(t)
	return e
}
