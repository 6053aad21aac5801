package workspaces

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"weir/models"
	"weir/policies"
	"weir/workspaces/deployments/serving"
)

// maxSwitches is how often a deployment can be replaced while a request to it begins.
const maxSwitches = 3

// openRequest is a request to a deployment that is computed next; close it.
type openRequest struct {
	Deployment models.Deployment

	s          *Service
	ctx        context.Context
	began      time.Time // when the request arrived
	generation serving.Generation
	model      serving.Model
	sequence   *serving.Sequence
	end        []func()
}

// Close ends the request.
func (r *openRequest) Close() {
	for _, end := range slices.Backward(r.end) {
		end()
	}
}

// Context ends when the right for the request does, or its client has gone.
func (r *openRequest) Context() context.Context { return r.ctx }

// openRequest has check check a request to a deployment for a task, before anything is deployed for
// it, and waits until it can be computed.
func (s *Service) openRequest(ctx context.Context, actor policies.Actor, id int64, task models.ModelTask, check func(*openRequest) error) (
	*openRequest, error) {
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return nil, err
	}
	if err := s.access.Check(actor, v.ProjectID, policies.WorkspaceLaunch); err != nil {
		return nil, err
	}
	began := s.store.Now()
	r, err := s.openServing(ctx, actor, v, task, check)
	if err != nil {
		s.countRequest(v.Deployment, began, err)
		return nil, err
	}
	r.began = began
	return r, nil
}

// openServing opens a request to the deployment that has taken the place of v.
func (s *Service) openServing(ctx context.Context, actor policies.Actor, v models.DeploymentView, task models.ModelTask,
	check func(*openRequest) error) (_ *openRequest, err error) {
	var failed error
	for range maxSwitches {
		d, err := current(s.store.Read(ctx), v.Deployment)
		if err != nil {
			return nil, err
		}
		if d.Task != task {
			return nil, otherTask(d)
		}
		var r *openRequest
		r, failed = s.openFor(ctx, actor, d, check)
		if _, ofPart := errors.AsType[*serving.PartError](failed); failed != nil && !ofPart {
			return nil, failed
		}
		// Only now does it finish what it computes when it is replaced. If a part has failed, it may have been
		// replaced or have become idle.
		if v, err = s.store.Read(ctx).Deployment(actor.Scope(), d.ID); err == nil && failed == nil && v.State == models.DeploymentServing {
			return r, nil
		}
		if r != nil {
			r.Close()
		}
		if err != nil {
			return nil, err
		}
		if v.State == models.DeploymentServing {
			return nil, partFailed(failed)
		}
	}
	return nil, notNow(v.Deployment)
}

// CheckDeployment returns the deployment that takes requests for another one of its series now, with an error of kind
// unavailable if it is in a state that ok does not accept.
func (s *Service) CheckDeployment(ctx context.Context, actor policies.Actor, id int64, ok func(models.DeploymentState) bool) (
	models.Deployment, error) {
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return models.Deployment{}, err
	}
	d, err := current(s.store.Read(ctx), v.Deployment)
	if err == nil && !ok(d.State) {
		err = notNow(d)
	}
	return d, err
}

// notNow is the error for what a deployment does not do in its state.
func notNow(d models.Deployment) error {
	return models.Unavailable(nil, "This deployment is %s.", d.State.Words())
}

// otherTask is the error for a request that is not for a deployment's task.
func otherTask(d models.Deployment) error {
	switch d.Task {
	case models.TaskImageClassification:
		return models.Conflict("This deployment classifies images. Send requests to /v2/models/{model}/infer.")
	case models.TaskTextEmbedding:
		return models.Conflict("This deployment embeds texts. Send requests to /v1/embeddings.")
	default:
		return models.Conflict("This deployment generates text. Send requests to /v1/completions or /v1/chat/completions.")
	}
}

// partFailed is the error for users, if a part has failed.
func partFailed(err error) error {
	if errors.Is(err, serving.ErrNotNumber) {
		return models.Conflict("The model has computed a value that is not a number. Its files may be damaged, or its values too large for their type.")
	}
	if failed, ok := errors.AsType[*serving.PartError](err); ok {
		return models.Unavailable(err, "Part %d did not respond. It is started again; repeat the request then.", int64(failed.Part+1))
	}
	return err
}

// openFor checks a request to a deployment, and waits until it can be computed.
func (s *Service) openFor(ctx context.Context, actor policies.Actor, d models.Deployment, check func(*openRequest) error) (
	*openRequest, error) {
	r := &openRequest{Deployment: d, s: s, ctx: ctx}
	ctx, end := s.requests.begin(ctx, s, actor, d)
	r.ctx, r.end = ctx, []func(){end}
	if err := r.prepare(actor, check); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// prepare checks a request before anything is deployed for it, and opens it.
func (r *openRequest) prepare(actor policies.Actor, check func(*openRequest) error) (err error) {
	if r.Deployment.State == models.DeploymentDeploying { // what it needs may not be written yet
		if r.Deployment, err = r.s.awaitServing(r.ctx, actor, r.Deployment); err != nil {
			return err
		}
	}
	if !r.Deployment.State.Answers() {
		return notNow(r.Deployment)
	}
	if err := r.readGeneration(); err != nil {
		return err
	}
	if err := check(r); err != nil {
		return err
	}
	return r.open(actor)
}

// readGeneration reads what belongs to the deployment.
func (r *openRequest) readGeneration() (err error) {
	r.generation, err = r.s.Served.Generation(r.Deployment)
	return err
}

// open waits until the deployment serves and it is the request's turn, and finds the parts.
func (r *openRequest) open(actor policies.Actor) (err error) {
	if r.Deployment, err = r.s.awaitServing(r.ctx, actor, r.Deployment); err != nil {
		return err
	}
	if state := r.Deployment.State; state != models.DeploymentServing {
		return models.Unavailable(nil, "This deployment is %s.", state.Words())
	}
	leave, err := r.s.queues.enter(r.ctx, r.Deployment)
	if err != nil {
		return err
	}
	r.end = append(r.end, leave)
	parts, err := r.s.store.Read(r.ctx).DeploymentParts(r.Deployment.ID)
	if err == nil {
		r.model, err = r.s.servedModel(r.Deployment, parts)
	}
	if err == nil {
		r.whileReady(parts)
		if r.sequence, err = r.model.Begin(r.ctx); err == nil {
			r.end = append(r.end, r.sequence.Close)
		}
	}
	return cmp.Or(context.Cause(r.ctx), err) // not that reading was canceled
}

// whileReady ends the context of the request, with the reason as the cause, when one of the parts is not ready any
// more: of one whose machine is gone, no answer comes, and no end of the connection.
func (r *openRequest) whileReady(parts []models.DeploymentPart) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(requestRecheck):
				now, err := r.s.store.Read(ctx).DeploymentParts(r.Deployment.ID)
				for i := range now {
					if err == nil && (now[i].State != models.PartReady || now[i].Restarts != parts[i].Restarts) {
						cancel(models.Unavailable(nil, "Part %d has ended. Repeat the request later.", now[i].Number+1))
					}
				}
			}
		}
	})
	r.ctx = ctx
	r.end = append(r.end, func() {
		cancel(nil)
		watching.Wait()
	})
}

// servedModel is the model of a deployment whose parts are all ready.
func (s *Service) servedModel(d models.Deployment, parts []models.DeploymentPart) (m serving.Model, err error) {
	m = serving.Model{Key: d.Key(), Hidden: int(d.Hidden), Vocabulary: int(d.Vocabulary),
		Add: d.Plan.Combine == models.CombineSum, Experts: d.Plan.Split == models.SplitExperts}
	for _, p := range parts {
		if p.State != models.PartReady {
			return m, models.Unavailable(nil, "Part %d is %s. Repeat the request later.", p.Number+1, p.State.Words())
		}
		m.Parts = append(m.Parts, func(ctx context.Context) (net.Conn, error) {
			return s.Parts.Dial(ctx, p.RuntimeState)
		})
	}
	return m, nil
}

// firstToken counts the time to the first token.
func (r *openRequest) firstToken() {
	now := r.s.store.Now()
	r.s.countDuration(requestCount{r.Deployment.First(), now.UTC().Truncate(time.Minute), models.MeasureFirstToken, 0}, now.Sub(r.began))
}

// done counts the request, which has ended with an error, or without, and what it had and gave.
func (r *openRequest) done(inputTokens, outputs int, err error) {
	r.s.countRequest(r.Deployment, r.began, err)
	of := requestCount{deployment: r.Deployment.First(), minute: r.s.store.Now().UTC().Truncate(time.Minute)}
	of.measure = models.MeasureInputTokens
	r.s.counts.add(of, amount{count: int64(inputTokens)})
	of.measure = models.MeasureOutputs
	r.s.counts.add(of, amount{count: int64(outputs)})
}

// countRequest counts a request to a deployment that began at a time and has ended with an error, or without.
func (s *Service) countRequest(d models.Deployment, began time.Time, err error) {
	now := s.store.Now()
	of := requestCount{deployment: d.First(), minute: now.UTC().Truncate(time.Minute), measure: outcome(err)}
	switch of.measure {
	case "":
	case models.MeasureDuration:
		s.countDuration(of, now.Sub(began))
	default:
		s.counts.add(of, amount{count: 1})
	}
}

func (s *Service) countDuration(of requestCount, d time.Duration) {
	of.bucket = models.DurationBucket(d)
	s.counts.add(of, amount{1, max(d, 0).Milliseconds()})
}

// outcome says as what a request counts whose error is err; "" for what the client has caused, which does not count.
func outcome(err error) models.DeploymentMeasure {
	_, ofPart := errors.AsType[*serving.PartError](err)
	switch kind := models.KindOf(err); {
	case err == nil:
		return models.MeasureDuration
	case errors.Is(err, context.Canceled):
		return ""
	case ofPart || errors.Is(err, serving.ErrNotNumber) || kind == models.KindUnavailable || kind == models.KindInternal:
		return models.MeasureFailed
	case kind == models.KindRateLimited:
		return models.MeasureRejected
	default:
		return ""
	}
}
