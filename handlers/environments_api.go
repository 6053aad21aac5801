package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/workspaces"
)

func (a rest) environmentsOperations(s section) {
	register(a, s, route{http.MethodGet, "/environments", 200, "list-environments",
		models.Say("List environments; with version constraints, sorted by best match and with the reasons for mismatches")}, a.listEnvironments)
	register(a, s, route{http.MethodPost, "/environments", 201, "create-environment",
		models.Say("Create an environment; requires platform administrator")}, a.createEnvironment)
	register(a, s, route{http.MethodGet, "/environments/{id}", 200, "get-environment", models.Say("Get an environment")}, a.getEnvironment)
	register(a, s, route{http.MethodPut, "/environments/{id}", 200, "update-environment",
		models.Say("Update an environment; requires platform administrator")}, a.updateEnvironment)
	register(a, s, route{http.MethodDelete, "/environments/{id}", 204, "delete-environment", models.Say("Delete an unused environment")},
		a.deleteEnvironment)
}

// Environment is a catalog entry.
type Environment struct {
	ID              int64                   `json:"id"`
	Name            string                  `json:"name"`
	Language        string                  `json:"language"`
	LanguageVersion string                  `json:"language_version" doc:"version of the language; empty while it is not known"`
	Versions        map[string]string       `json:"versions" doc:"versions by framework or tool"`
	Minimum         models.Minimum          `json:"minimum" doc:"minimum resources"`
	Launch          models.LaunchParameters `json:"launch"`
	Image           string                  `json:"image,omitempty" doc:"container image, for Kubernetes"`
	Command         []string                `json:"command" doc:"program, by its absolute path, and its arguments"`
	DefaultPath     string                  `json:"default_path,omitempty" doc:"default URL path"`
	NoNotebook      bool                    `json:"no_notebook,omitempty" doc:"has no notebook server: for runs and deployments, not for workspaces"`
	Discovered      bool                    `json:"discovered" doc:"discovered on the local machine"`
	Unavailable     string                  `json:"unavailable,omitempty" doc:"reason that the environment is unavailable"`
	CreatedAt       time.Time               `json:"created_at"`
}

func environmentOf(e models.Environment) Environment {
	v := Environment{ID: e.ID, Name: e.Name, Language: e.Language, LanguageVersion: e.LanguageVersion, Versions: e.Versions,
		Minimum: e.Minimum, Launch: e.Launch, Image: e.Image, Command: e.Command, DefaultPath: e.DefaultPath, NoNotebook: e.NoNotebook,
		Discovered: e.DiscoveredKey != nil, Unavailable: e.Unavailable.String(), CreatedAt: e.CreatedAt.UTC()}
	if v.Versions == nil {
		v.Versions = map[string]string{}
	}
	if v.Command == nil {
		v.Command = []string{}
	}
	return v
}

// MatchedEnvironment is an environment with the result of matching it.
type MatchedEnvironment struct {
	Environment
	Matches *bool    `json:"matches,omitempty" doc:"matches the version constraints; absent without constraints"`
	Matched []string `json:"matched,omitempty" doc:"matched versions"`
	Reasons []string `json:"reasons,omitempty" doc:"reasons for the mismatch"`
}

func matchOf(m workspaces.Match) MatchedEnvironment {
	yes := true
	return MatchedEnvironment{Environment: environmentOf(m.Environment), Matches: &yes, Matched: models.Map(m.Matched, models.Text.String)}
}

func mismatchOf(m workspaces.Mismatch) MatchedEnvironment {
	no := false
	return MatchedEnvironment{Environment: environmentOf(m.Environment), Matches: &no, Reasons: models.Map(m.Reasons, models.Text.String)}
}

// EnvironmentsQuery selects environments.
type EnvironmentsQuery struct {
	Paging
	VersionConstraints string `query:"version_constraints" maxLength:"1000" doc:"version constraints, such as python>=3.11, torch"`
}

func (a rest) listEnvironments(ctx context.Context, in *EnvironmentsQuery) (*Response[List[MatchedEnvironment]], error) {
	var list []MatchedEnvironment
	var err error
	if in.VersionConstraints == "" {
		var all []models.Environment
		all, err = a.Catalog.Environments(ctx, actorOf(ctx))
		list = models.Map(all, func(e models.Environment) MatchedEnvironment {
			return MatchedEnvironment{Environment: environmentOf(e)}
		})
	} else {
		var matches []workspaces.Match
		var mismatches []workspaces.Mismatch
		matches, mismatches, err = a.Catalog.Match(ctx, actorOf(ctx), workspaces.MatchInput{VersionConstraints: in.VersionConstraints})
		list = append(models.Map(matches, matchOf), models.Map(mismatches, mismatchOf)...)
	}
	return listedAll(in.Paging, func(e MatchedEnvironment) int64 { return e.ID }, list, err,
		func(e MatchedEnvironment) MatchedEnvironment { return e })
}

func (a rest) createEnvironment(ctx context.Context, in *Create[workspaces.EnvironmentInput]) (*Created[Environment], error) {
	e, err := a.Catalog.Create(ctx, actorOf(ctx), in.Body)
	return created(e.Version, environmentOf(e), err, "environments", e.ID)
}

func (a rest) getEnvironment(ctx context.Context, in *ByID) (*Found[Environment], error) {
	e, err := a.Catalog.Environment(ctx, actorOf(ctx), in.ID)
	return found(e.Version, environmentOf(e), err)
}

func (a rest) updateEnvironment(ctx context.Context, in *Update[workspaces.EnvironmentInput]) (*Found[Environment], error) {
	in.Body.Version = in.version
	e, err := a.Catalog.Update(ctx, actorOf(ctx), in.ID, in.Body)
	return found(e.Version, environmentOf(e), err)
}

func (a rest) deleteEnvironment(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Catalog.Delete(ctx, actorOf(ctx), in.ID)
}
