package workspaces

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strconv"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// insidePrefix begins the credentials of programs in workspaces.
const insidePrefix = "weirw_"

// InsideToken is the credential of the programs in a workspace that reach a server over the network. It
// holds as long as the secret of the notebook, which it does not tell.
func InsideToken(w models.Workspace) string {
	return fmt.Sprintf("%s%d_%s", insidePrefix, w.ID, policies.HashSecret("inside "+w.Secret))
}

// Inside returns the running workspace from inside which a request with a credential comes.
func (s *Service) Inside(ctx context.Context, token string) (id int64, err error) {
	refusal := &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("The credential is not that of a running workspace.")}
	text, known := strings.CutPrefix(token, insidePrefix)
	number, _, _ := strings.Cut(text, "_")
	if id, err = strconv.ParseInt(number, 10, 64); err != nil || !known {
		return 0, refusal
	}
	w, err := s.store.Read(ctx).Workspace(store.AllProjects, id)
	if models.IgnoreNotFound(err) != nil {
		return 0, err
	}
	same := subtle.ConstantTimeCompare([]byte(token), []byte(InsideToken(w))) == 1
	if err != nil || w.State != models.StateRunning || w.Secret == "" || !same {
		return 0, refusal
	}
	return id, nil
}

// ActorInside is who a program inside a running workspace acts as: its owner, limited to its
// project and to the runs in its environment. The owner's access is checked as for a visit.
func (s *Service) ActorInside(ctx context.Context, accounts *policies.Accounts, id int64) (policies.Actor, error) {
	w, err := s.store.Read(ctx).Workspace(store.AllProjects, id)
	if err != nil {
		return policies.Actor{}, err
	}
	actor, err := accounts.Load(ctx, w.UserID)
	if err != nil {
		return policies.Actor{}, err
	}
	actor = actor.ActInside(policies.Inside{Workspace: id, Project: w.ProjectID}, fmt.Sprintf("workspace %d", id))
	if _, err := s.AdmitActor(ctx, actor, id); err != nil {
		return policies.Actor{}, err
	}
	return actor, nil
}
