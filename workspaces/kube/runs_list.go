package kube

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"weir/models"
	"weir/workspaces/runtime"
)

// Remove deletes what is left of a run that has ended; see [runtime.Runs].
func (r *Runs) Remove(ctx context.Context, state runtime.State) error {
	id, err := parseState(state)
	if err != nil {
		return err
	}
	pod, err := r.cluster.find(ctx, id)
	if err != nil {
		return err
	}
	if pod != nil {
		if _, err := r.result(id); err != nil && !podEnded(pod) {
			return models.Conflict("The run has not ended.")
		}
		if err := r.cluster.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	r.forget(id, pod)
	return os.RemoveAll(r.path(id))
}

// List returns the runs that have a pod or have left something; see [runtime.Runs]. It
// deletes pods of which the end is recorded, or was long ago.
func (r *Runs) List(ctx context.Context) ([]runtime.Instance, error) {
	pods, err := r.cluster.podLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var all []runtime.Instance
	var failed []error
	present := map[string]bool{}
	for _, pod := range pods {
		id, ok := r.cluster.config.runOf(r.kind, pod)
		if !ok {
			continue
		}
		present[id.Pod] = true
		_, err := r.result(id)
		if err == nil || podEnded(pod) && r.cluster.isOrphan(pod) {
			failed = append(failed, r.cluster.deletePod(ctx, pod))
		}
		all = append(all, runtime.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state(),
			Ended: err == nil || podEnded(pod)})
	}
	left, err := r.leftovers(ctx, present)
	return append(all, left...), errors.Join(append(failed, err)...)
}

// leftovers are the runs of directories whose pods the informer does not have. Those with a result, or without any pod,
// are read once: the directory is shared, and keeps runs long after their end.
func (r *Runs) leftovers(ctx context.Context, present map[string]bool) (all []runtime.Instance, err error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	known := r.ended
	r.mu.Unlock()
	ended := map[string]runtime.Instance{}
	var failed []error
	for _, e := range entries {
		if _, own := r.cluster.config.runNamed(r.kind, e.Name()); !own || present[e.Name()] {
			continue
		}
		left, final := known[e.Name()]
		if !final {
			left, final, err = r.leftover(ctx, e)
			failed = append(failed, err)
		}
		if final {
			ended[e.Name()] = left
		}
		if left.State != nil {
			all = append(all, left)
		}
	}
	r.mu.Lock()
	r.ended = ended
	r.mu.Unlock()
	return all, errors.Join(failed...)
}

// leftover is the run of a directory whose pod the informer does not have. It is final when the
// directory has its result, or the cluster has no pod: one that is made later, the informer will have.
func (r *Runs) leftover(ctx context.Context, dir fs.DirEntry) (in runtime.Instance, final bool, err error) {
	id, err := readJSON[ref](filepath.Join(r.dir, dir.Name(), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return in, false, r.removeUnstarted(dir)
	}
	if err != nil {
		return in, false, err
	}
	in = runtime.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state(), Ended: true}
	if _, err := r.result(id); err == nil {
		return in, true, nil
	}
	pod, err := r.cluster.find(ctx, id)
	in.Ended = err == nil && (pod == nil || podEnded(pod))
	return in, err == nil && pod == nil, err
}

// removeUnstarted removes the directory of a run whose start was interrupted before anything was
// made; not one that is being started.
func (r *Runs) removeUnstarted(dir fs.DirEntry) error {
	info, err := dir.Info()
	if err == nil && time.Since(info.ModTime()) > startTimeout {
		err = os.RemoveAll(filepath.Join(r.dir, dir.Name()))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another server has removed it
	}
	return err
}
