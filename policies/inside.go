package policies

import "weir/models"

// Inside is a workspace whose programs act as its owner without a token, and its project.
type Inside struct{ Workspace, Project int64 }

// ActInside limits an actor to what programs inside a workspace may do: what the scope
// launch allows its owner in its project. Services limit it further, to the runs of the
// workspace; see [Actor.MayReach].
func (a Actor) ActInside(in Inside, via string) Actor {
	a.Via, a.Scopes = via, []models.TokenScope{models.ScopeLaunch}
	return a.limited(in)
}

// limited takes the rights outside of a workspace's project away.
func (a Actor) limited(in Inside) Actor {
	if in == (Inside{}) {
		return a
	}
	grants := map[int64]Grant{}
	if grant, ok := a.Grants[in.Project]; ok {
		grants[in.Project] = grant
	}
	a.Inside, a.Grants = in, grants
	a.User.Admin, a.User.Auditor = false, false
	return a
}

// MayReach reports whether the actor can reach what belongs to a workspace, or with nil to
// none: from inside of a workspace nothing else.
func (a Actor) MayReach(workspace *int64) bool {
	return a.Inside.Workspace == 0 || workspace != nil && *workspace == a.Inside.Workspace
}
