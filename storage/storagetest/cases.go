package storagetest

import "weir/models"

// Line says what a member can do with a path. In paths, {p} is the project, {q} another
// one, and {ann}, {ben} and {cid} are members: engineers, and one who has left and whose
// directory was handed over to ben.
type Line struct {
	Who    string
	Path   string // of a directory with a file named file, or of a file
	Access models.FileAccess
	// Mounted is the access in a workspace where that is another, since a mount cannot
	// express the rule; "" otherwise.
	Mounted models.FileAccess
	// InPod is the access in a pod where that is yet another: the kubelet follows links, so
	// nothing is mounted where members could put one.
	InPod models.FileAccess
	// Kept is set if it must not be downloaded. A mount cannot express that: what a notebook
	// reads, it has.
	Kept bool
}

// mounted is the access in a workspace, and whether it is another than the rules give.
func (l Line) mounted(pod bool) (access models.FileAccess, limited bool) {
	switch {
	case pod && l.InPod != "":
		return l.InPod, true
	case l.Mounted != "":
		return l.Mounted, true
	default:
		return l.Access, l.Kept
	}
}

// Rule is a rule of a set. Subject is "project", "everyone", "role" of ann and ben, or
// the name of a member.
type Rule struct {
	Path    string
	Subject string
	Access  models.FileAccess
}

// Set is rules, and what follows from them.
type Set struct {
	Name  string
	Ended bool // the period of use is over
	Rules []Rule
	// Kept are more rules, which also deny downloads.
	Kept  []Rule
	Lines []Line
}

const (
	none  = models.AccessNone
	read  = models.AccessRead
	write = models.AccessWrite
)

// Directories in the project's directory of models, each with a file named file. later
// is created after workspaces have started.
const (
	model = "/notebook/{p}/project_model"
	top   = model + "/top"
	inner = model + "/top/inner"
	later = model + "/later"
)

// Sets are all cases.
var Sets = []Set{
	{Name: "layout", Lines: []Line{
		{Who: "ann", Path: model, Access: write}, {Who: "ann", Path: inner, Access: write}, {Who: "ben", Path: top + "/file", Access: write},
		{Who: "ann", Path: "/notebook/{p}/{ann}", Access: write}, {Who: "ann", Path: "/home/jovyan", Access: write},
		{Who: "ann", Path: "/notebook/{p}/{ben}", Access: read}, {Who: "ben", Path: "/notebook/{p}/{ann}", Access: read},
		{Who: "ann", Path: "/notebook/{p}/{cid}", Access: read}, {Who: "ben", Path: "/notebook/{p}/{cid}", Access: write},
		{Who: "ann", Path: "/public_model", Access: read}, {Who: "ann", Path: "/public_model/file", Access: read},
		{Who: "ann", Path: "/notebook/{q}/project_model", Access: none},
	}},
	{Name: "read for the role, write for a member", Rules: []Rule{{top, "role", read}, {top, "ann", write}}, Lines: []Line{
		{Who: "ann", Path: top, Access: write}, {Who: "ann", Path: inner, Access: write}, {Who: "ben", Path: top, Access: read,
			InPod: none}, {Who: "ben", Path: inner, Access: read, InPod: none},
		{Who: "ben", Path: model, Access: write}, {Who: "ben", Path: top + "/file", Access: read, InPod: none},
	}},
	{Name: "hidden, with a way in", Rules: []Rule{{top, "ben", none}, {inner, "ben", read}}, Lines: []Line{
		{Who: "ann", Path: top, Access: write}, {Who: "ben", Path: top, Access: none}, {Who: "ben", Path: top + "/file", Access: none},
		{Who: "ben", Path: inner, Access: read, Mounted: none}, {Who: "ben", Path: model, Access: write},
	}},
	{Name: "writable in what is read", Rules: []Rule{{model, "project", read}, {inner, "role", write}}, Lines: []Line{
		{Who: "ann", Path: model, Access: read}, {Who: "ann", Path: top, Access: read}, {Who: "ann", Path: inner, Access: write,
			InPod: read}, {Who: "ben", Path: inner + "/file", Access: write, InPod: read},
	}},
	{Name: "a colleague's directory", Rules: []Rule{{"/notebook/{p}/{ann}/sub", "ben", write}, {"/notebook/{p}/{ben}", "ann", none}},
		Lines: []Line{
			{Who: "ben", Path: "/notebook/{p}/{ann}/sub", Access: write, InPod: read}, {Who: "ben", Path: "/notebook/{p}/{ann}", Access: read},
			{Who: "ann", Path: "/notebook/{p}/{ann}/sub", Access: write}, {Who: "ann", Path: "/notebook/{p}/{ben}", Access: none}, {Who: "ben",
				Path: "/notebook/{p}/{ben}", Access: write},
		}},
	{Name: "files", Rules: []Rule{{top + "/file", "role", read}, {inner + "/file", "ben", none}}, Lines: []Line{
		{Who: "ann", Path: top + "/file", Access: read, Mounted: write}, {Who: "ben", Path: inner + "/file", Access: none, Mounted: write},
		{Who: "ann", Path: inner + "/file", Access: write}, {Who: "ann", Path: model, Access: write},
	}},
	{Name: "read, and not downloaded", Rules: []Rule{{model, "ann", write}},
		Kept: []Rule{{model, "project", read}, {"/notebook/{p}/{ann}", "ben", read}}, Lines: []Line{
			{Who: "ann", Path: model, Access: write, Kept: true}, {Who: "ben", Path: model, Access: read, Kept: true}, {Who: "ben",
				Path: inner + "/file", Access: read, Kept: true},
			{Who: "ben", Path: "/notebook/{p}/{ann}", Access: read, Kept: true}, {Who: "ann", Path: "/notebook/{p}/{ann}",
				Access: write}, {Who: "ann", Path: "/notebook/{p}/{ben}", Access: read},
		}},
	{Name: "not there at the start", Rules: []Rule{{later, "project", read}}, Lines: []Line{
		{Who: "ann", Path: later, Access: read, Mounted: write}, {Who: "ann", Path: top, Access: write},
	}},
	{Name: "everything is hidden", Rules: []Rule{{"/notebook/{p}", "project", none}, {"/notebook/{p}/{ann}", "ann", write}}, Lines: []Line{
		{Who: "ann", Path: model, Access: none}, {Who: "ben", Path: "/notebook/{p}/{ann}", Access: none}, {Who: "ann", Path: "/public_model",
			Access: read},
		{Who: "ann", Path: "/home/jovyan", Access: write},
	}},
	{Name: "after the end", Ended: true, Rules: []Rule{{top, "role", write}}, Lines: []Line{
		{Who: "ann", Path: model, Access: read}, {Who: "ann", Path: top, Access: read}, {Who: "ann", Path: "/notebook/{p}/{ann}",
			Access: read}, {Who: "ben", Path: "/notebook/{p}/{cid}", Access: read},
	}},
}
