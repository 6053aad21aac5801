package workspaces

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"weir/models"
)

// spec resolves everything that the runtime needs to launch w.
func (r *Reconciler) spec(ctx context.Context, w models.Workspace) (Spec, error) {
	q := r.store.Read(ctx)
	env, err := q.Environment(w.EnvironmentID)
	if err != nil {
		return Spec{}, err
	}
	user, err := q.User(w.UserID)
	if err != nil {
		return Spec{}, err
	}
	holder, err := q.Holder(w.ProjectID, w.MemberID)
	if err != nil {
		return Spec{}, err
	}
	mounts, err := r.storage.Mounts(ctx, holder)
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Workspace: w.ID, Generation: w.Generation, Project: w.ProjectID, Member: w.MemberID, User: user.Email,
		Command: env.Command, Image: env.Image, Env: r.env(w), Token: w.Secret, Mounts: mounts,
		CPU: w.Demand.CPUMilli, Memory: w.Demand.MemoryMiB, Shm: shmOf(w)}
	maps.Copy(s.Env, envOf(w))
	s.GPUs, s.Node, err = gpusOf(q, w.ID)
	return s, err
}

// gpusOf lists the shares that a workspace holds, and names the provider that
// has their devices: the pool places all of them on one.
func gpusOf(q *models.Queries, workspace int64) (list []GPU, node string, err error) {
	shares, err := q.SharesOf(workspace)
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
		list = append(list, GPU{UUID: d.UUID, Index: int(d.Number), Minor: int(d.Minor), Cores: s.Cores,
			MemoryMiB: s.MemoryMiB, Simulated: d.Simulated, Enforcement: s.Enforcement})
	}
	p, err := q.Provider(provider)
	return list, p.Name, err
}

func shmOf(w models.Workspace) int64 {
	for _, p := range w.Target {
		if p.Name == "shm_mib" {
			n, _ := strconv.ParseInt(p.Value, 10, 64)
			return n
		}
	}
	return defaultShmMiB
}

func envOf(w models.Workspace) map[string]string {
	env := map[string]string{}
	for _, p := range w.Target {
		if name, ok := strings.CutPrefix(p.Name, "env."); ok {
			env[name] = p.Value
		}
	}
	return env
}
