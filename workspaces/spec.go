package workspaces

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"weir/models"
	"weir/models/store"

	"weir/workspaces/runtime"
)

// spec returns everything that the runtime needs to launch w, and what the rules of the
// mounted directories give its member.
func (r *Reconciler) spec(ctx context.Context, w models.Workspace) (s runtime.Spec, granted []models.PathAccess, err error) {
	q := r.config.Store.Read(ctx)
	env, err := q.Environment(w.EnvironmentID)
	if err != nil {
		return s, nil, err
	}
	user, err := q.User(w.UserID)
	if err != nil {
		return s, nil, err
	}
	holder, err := q.DirectoryUser(w.ProjectID, w.MemberID)
	if err != nil {
		return s, nil, err
	}
	mounts, granted, err := r.config.Storage.EnsureMounts(ctx, holder)
	if err != nil {
		return s, nil, err
	}
	uid, gid, err := r.config.Storage.IDs(holder)
	if err != nil {
		return s, nil, err
	}
	shm, _ := strconv.ParseInt(parameter(w, "shm_mib"), 10, 64)
	s = runtime.Spec{Workspace: w.ID, Generation: w.Generation, Project: w.ProjectID, Member: w.MemberID, User: user.Email, UID: uid, GID: gid,
		Command: env.Command, Image: env.Image, Env: r.config.Env(w), Token: w.Secret, Mounts: mounts,
		CPU: w.Demand.CPUMilli, Memory: w.Demand.MemoryMiB, Shm: cmp.Or(shm, defaultShmMiB)}
	for _, p := range w.Target {
		if name, ok := strings.CutPrefix(p.Name, "env."); ok {
			s.Env[name] = p.Value
		} else if p.Name == modelParameter {
			s.Env["WEIR_MODEL"] = p.Value
		}
	}
	s.GPUs, s.Node, err = gpusOf(q, w.HolderID)
	return s, granted, err
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

// parameter returns the value of a target launch parameter, or "".
func parameter(w models.Workspace, name string) string {
	i := slices.IndexFunc(w.Target, func(p models.Parameter) bool { return p.Name == name })
	if i < 0 {
		return ""
	}
	return w.Target[i].Value
}
