package workspaces

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"weir/models"
	"weir/models/store"

	"weir/workspaces/runtime"
)

// spec returns everything that the runtime needs to launch w, and what the rules of the
// mounted directories give its member.
func (r *Reconciler) spec(ctx context.Context, w models.Workspace) (runtime.Spec, []models.PathAccess, error) {
	env, err := r.config.Env(ctx, w)
	if err != nil {
		return runtime.Spec{}, nil, err
	}
	s, access, err := r.specOf(ctx, w.Claim(), w.EnvironmentID, w.Target, env)
	s.Workspace, s.Generation, s.Token = w.ID, w.Generation, w.Secret
	return s, access, err
}

// runSpec returns everything that the runtime needs to start a run, and what the rules of
// the mounted directories give its member.
func (r *Reconciler) runSpec(ctx context.Context, run models.Run) (runtime.Spec, []models.PathAccess, error) {
	s, access, err := r.specOf(ctx, run.Claim(), run.EnvironmentID, run.Target, r.config.RunEnv(run))
	s.Workspace, s.Generation, s.Directory = run.ID, 1, run.Directory
	if err == nil && run.WorkspaceID != nil {
		s.Beside = *run.WorkspaceID
		s.Kernels, err = r.kernelsDir(ctx, *run.WorkspaceID)
	}
	return s, access, err
}

// kernelsDir is the directory of the sockets of a workspace's kernels; empty if it does not
// run, or where there is none.
func (r *Reconciler) kernelsDir(ctx context.Context, workspace int64) (string, error) {
	has, ok := r.config.Runtime.(interface {
		KernelsDir(runtime.State) (string, error)
	})
	w, err := r.config.Store.Read(ctx).Workspace(store.AllProjects, workspace)
	if err != nil || !ok || w.State != models.StateRunning {
		return "", err
	}
	return has.KernelsDir(w.RuntimeState)
}

// specOf is the part of a spec that workspaces and runs have in common: the environment,
// the directories of the member, with what their rules give, the amounts and the shares.
func (r *Reconciler) specOf(ctx context.Context, c models.Claim, environment int64, target []models.Parameter, vars map[string]string) (
	s runtime.Spec, access []models.PathAccess, err error) {
	q := r.config.Store.Read(ctx)
	env, err := q.Environment(environment)
	if err != nil {
		return s, nil, err
	}
	project, err := q.Project(store.AllProjects, c.ProjectID)
	if err != nil {
		return s, nil, err
	}
	holder, err := q.DirectoryUser(c.ProjectID, c.MemberID)
	if err != nil {
		return s, nil, err
	}
	mounts, access, err := r.config.Storage.EnsureMounts(ctx, holder)
	if err != nil {
		return s, nil, err
	}
	uid, gid, err := r.config.Storage.IDs(holder)
	if err != nil {
		return s, nil, err
	}
	shm, _ := strconv.ParseInt(parameter(target, "shm_mib"), 10, 64)
	s = runtime.Spec{Project: c.ProjectID, Member: c.MemberID, UID: uid, GID: gid,
		Command: env.Command, Image: env.Image, Env: vars, Mounts: mounts,
		CPU: c.Demand.CPUMilli, Memory: c.Demand.MemoryMiB, Shm: cmp.Or(shm, defaultShmMiB),
		Outgoing: r.outgoing(ctx, project.Outgoing)}
	for _, p := range target {
		if name, ok := strings.CutPrefix(p.Name, "env."); ok {
			s.Env[name] = p.Value
		} else if p.Name == modelParameter {
			s.Env["WEIR_MODEL"] = p.Value
		}
	}
	s.GPUs, s.Node, err = gpusOf(q, c.ID)
	return s, access, err
}

// gpusOf returns the shares of a workspace, and the name of the provider of
// their devices: the pool places all shares of a workspace on one provider.
func gpusOf(q *store.Queries, holder int64) (list []runtime.GPU, node string, err error) {
	shares, err := q.SharesOf(holder)
	if err != nil || len(shares) == 0 {
		return nil, "", err
	}
	var provider int64
	for _, s := range shares {
		d, err := q.Device(s.DeviceID)
		if err != nil {
			return nil, "", err
		}
		provider = d.ProviderID
		list = append(list, runtime.GPU{UUID: d.UUID, Index: int(d.Number), Minor: int(d.Minor), Cores: s.Cores,
			MemoryMiB: s.MemoryMiB, Simulated: d.Simulated, Enforcement: s.Enforcement})
	}
	p, err := q.Provider(provider)
	return list, p.Name, err
}
