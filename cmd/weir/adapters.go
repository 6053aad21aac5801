package main

import (
	"context"
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage"
	"weir/storage/rules"
	"weir/workspaces"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/kube"
	"weir/workspaces/proxy"
)

// gate admits visitors to workspaces as the service decides.
type gate struct {
	*workspaces.Service
	accounts *policies.Accounts
}

func (g gate) Admit(ctx context.Context, workspace int64, c proxy.Credential) (t proxy.Target, err error) {
	var a store.Admission
	if c.Bearer != "" {
		actor, authErr := g.accounts.ActorByToken(ctx, c.Bearer)
		if authErr != nil {
			return t, authErr
		}
		a, err = g.AdmitActor(ctx, actor, workspace)
	} else {
		a, err = g.AdmitVisit(ctx, workspace, c.Cookie)
	}
	return proxy.Target{Workspace: workspace, Generation: a.Generation, Endpoint: a.Endpoint, Token: a.Secret,
		RevocationKeys: a.Validity().Keys}, err
}

// workspaceEnv returns the environment variables of a notebook.
func (p *portal) workspaceEnv(ctx context.Context, w models.Workspace) (map[string]string, error) {
	env := map[string]string{"WEIR_URL": p.origin, "WEIR_WORKSPACE": strconv.FormatInt(w.ID, 10),
		"WEIR_PROJECT": strconv.FormatInt(w.ProjectID, 10), "NB_PREFIX": "/"}
	more, err := p.inside.variables(ctx, w)
	maps.Copy(env, more)
	return env, err
}

// runEnv returns the environment variables of a run.
func (p *portal) runEnv(r models.Run) map[string]string {
	return map[string]string{"WEIR_URL": p.origin, "WEIR_RUN": strconv.FormatInt(r.ID, 10), "WEIR_PROJECT": strconv.FormatInt(r.ProjectID, 10)}
}

// sharedDirectories returns the directories that the pods of a project can mount.
func (p *portal) sharedDirectories(project int64) []kube.Directory {
	all := []kube.Directory{{Name: "project", Path: rules.ProjectDir(project)},
		{Name: "deployments", Path: path.Join(storage.DeploymentsDir(p.owner.Generation), serving.ProjectDir(project)), ReadOnly: true}}
	for _, dir := range rules.PublicDirs() {
		all = append(all, kube.Directory{Name: strings.ReplaceAll(dir[1:], "_", "-"), Path: dir, ReadOnly: true})
	}
	return all
}

// activityTimeout bounds how long what is forwarded waits for a database that does not answer.
const activityTimeout = 2 * time.Second

// recordActivity records the use of workspaces. Errors are only logged.
func (p *portal) recordActivity(service *workspaces.Service) func(int64) {
	return func(id int64) {
		ctx, cancel := context.WithTimeout(context.Background(), activityTimeout)
		defer cancel()
		if err := service.Activity(ctx, id); err != nil {
			p.log.Warn("cannot record activity", "workspace", id, "err", err)
		}
	}
}

func (p *portal) serveWorkspaceError(w http.ResponseWriter, r *http.Request, status int, err *models.Error) {
	p.app.ServeWorkspaceError(w, r, status, err, p.origin)
}
