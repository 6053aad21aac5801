package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) startOperations(s section) {
	register(a, s, route{http.MethodPost, "/projects/start", 201, "start-project",
		models.Say("Create a project with the roles owner and member, owned by you; requires platform administrator")}, a.startProject)
	register(a, s, route{http.MethodPost, "/projects/start/preview", 200, "preview-project",
		models.Say("Preview the quota and limits of a new project; requires platform administrator")}, a.previewProject)
}

// StartedProject is a new project with its roles.
type StartedProject struct {
	Project  Project `json:"project"`
	Owner    Role    `json:"owner"`
	Member   Role    `json:"member"`
	MemberID int64   `json:"member_id" doc:"your membership"`

	Invitations []InvitationURL `json:"invitations"`
}

func (a rest) startProject(ctx context.Context, in *Create[projects.StartInput]) (*Created[StartedProject], error) {
	v, err := a.Projects.Start(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	p, err := a.Projects.Project(ctx, actorOf(ctx), v.Project.ID)
	return created(v.Project.Version, StartedProject{projectOf(p, a.Store.Now()), roleOf(v.Owner), roleOf(v.Member), v.Membership.ID,
		a.invitationURLs(ctx, v.Invited)}, err, "projects", v.Project.ID)
}

// StartPreview is the quota and limits of a new project.
type StartPreview struct {
	Members int64          `json:"members" doc:"number of members among whom the quota is divided"`
	Quota   []FilledAmount `json:"quota"`
	Limit   []FilledAmount `json:"limit" doc:"limit per member, of both roles"`
	Beyond  []string       `json:"beyond,omitempty" doc:"resources allocated above the pool's capacity, which requires confirm and reason"`
}

func (a rest) previewProject(ctx context.Context, in *Create[projects.StartInput]) (*Response[StartPreview], error) {
	v, err := a.Projects.PreviewStart(ctx, actorOf(ctx), in.Body)
	return &Response[StartPreview]{StartPreview{v.Members, models.Map(v.Quota, filledOf), models.Map(v.Limit, filledOf),
		models.Map(v.Beyond, models.Text.String)}}, err
}
